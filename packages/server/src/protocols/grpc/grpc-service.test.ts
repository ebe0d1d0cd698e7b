import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { credentials, Metadata } from '@grpc/grpc-js'
import { manualClock } from 'sluicegate'
import { longTest, shortOrLong, until } from 'sluicegate-testkit'
import { makeCertificates } from 'sluicegate-testkit/service/certificates.js'
import { aGuard, envoyDomains } from 'sluicegate-testkit/service/running-service.js'
import { GrpcTestClient, pathOf } from 'sluicegate-testkit/service/simulated-envoy.js'
import { Access } from '../../access.js'
import { Engine } from '../../engine/engine.js'
import { RateLimits } from '../../envoy/rate-limits.js'
import { rlsService } from './grpc-protocol.js'
import type { GrpcServerOptions } from './grpc-server.js'
import { GrpcService } from './grpc-service.js'
import { framed } from './message-reader.js'
import { RateLimitRequestSchema, RateLimitService } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import { Health, HealthCheckRequestSchema, HealthCheckResponseSchema } from './messages/grpc/health/v1/health.gen.js'
import { ServerReflectionRequestSchema, ServerReflectionResponseSchema } from './messages/grpc/reflection/v1/reflection.gen.js'
import { GrpcError, STATUS } from './status.js'

const { shouldRateLimit } = RateLimitService.method
const PATH = pathOf(shouldRateLimit)

const RULES = `domain: edge
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 2, name: users } }
  - { key: free, rate_limit: { unlimited: true } }
`

async function setUp(t: TestContext, options: Partial<GrpcServerOptions> = {}) {
  const domains = envoyDomains(RULES)
  const clock = manualClock(12_000)
  const engine = new Engine(
    domains.flatMap(({ policies }) => policies),
    { clock },
  )
  const service = new GrpcService([rlsService(new RateLimits(engine, domains, undefined, () => clock.nowMs()), new Access([]))], {
    guard: aGuard('grpc'),
    ...options,
  })
  const url = await service.listen({ host: '127.0.0.1', port: 0 })
  let stopped: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopped ??= service.stop(1_000)
    return stopped
  }
  t.after(stop)
  const client = new GrpcTestClient(url)
  t.after(() => client[Symbol.dispose]())
  return { service, url, port: Number(url.split(':').at(-1)), client, stop }
}

function requestOf(...entries: (readonly [key: string, value: string])[]) {
  return { domain: 'edge', descriptors: entries.map(([key, value]) => ({ entries: [{ key, value }] })) }
}

function frameOf(...entries: (readonly [key: string, value: string])[]): Buffer {
  return framed(toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, requestOf(...entries))))
}

type ReflectionRequest = MessageInitShape<typeof ServerReflectionRequestSchema>

/** A client of HTTP/2 that does as it likes. */
async function rawClient(t: TestContext, port: number, settings = {}): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`, { settings })
  session.on('error', () => {})
  t.after(() => session.destroy())
  await once(session, 'connect')
  return session
}

function openStream(session: ClientHttp2Session) {
  const stream = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers' })
  stream.on('error', () => {})
  return stream
}

test('a client of gRPC’s own library gets the verdict, and a status for each descriptor', async (t) => {
  const { client } = await setUp(t)
  const ask = () => client.call(shouldRateLimit, requestOf(['user', 'ali\u{1F600}ce'], ['free', '1'], ['other', '1']))
  const answers = [await ask(), await ask(), await ask()]
  assert.deepEqual(
    answers.map(({ overallCode }) => overallCode),
    [1, 1, 2],
  )
  const [user, free, other] = answers[2]?.statuses ?? []
  assert.deepEqual(
    [user?.code, user?.currentLimit?.requestsPerUnit, user?.currentLimit?.unit, user?.currentLimit?.name],
    [2, 2, 2, 'users'],
  )
  assert.deepEqual([user?.limitRemaining, user?.durationUntilReset?.seconds], [0, 48n])
  assert.deepEqual([free?.code, free?.currentLimit, free?.limitRemaining], [1, undefined, 0xffff_ffff])
  assert.deepEqual([other?.code, other?.currentLimit, other?.limitRemaining], [1, undefined, 0])
})

test('what is unset, unknown, too large or damaged ends with a status', async (t) => {
  const { client } = await setUp(t)
  const unset = { code: STATUS.unknown, details: 'rate limit domain must not be empty' }
  await assert.rejects(client.call(shouldRateLimit, { ...requestOf(['user', 'a']), domain: '' }), unset)
  await assert.rejects(client.call(shouldRateLimit, requestOf()), { code: STATUS.unknown, details: /descriptor list must not be empty/ })
  await assert.rejects(client.call(shouldRateLimit, requestOf(['user', 'x'.repeat(70_000)])), { code: STATUS.resourceExhausted })
  const many = Array.from({ length: 129 }, () => ['user', 'a'] as const)
  await assert.rejects(client.call(shouldRateLimit, requestOf(...many)), { code: STATUS.invalidArgument })
  const nowhere = { ...shouldRateLimit, name: 'Nothing' }
  await assert.rejects(client.call(nowhere, requestOf(['user', 'a'])), {
    code: STATUS.unimplemented,
    details: /there is no method .*Nothing/,
  })
  const damaged = { ...shouldRateLimit, input: { ...RateLimitRequestSchema } }
  assert.equal((await client.call(damaged, requestOf(['user', 'a']))).overallCode, 1)
})

test('compressed requests are refused with the status that makes clients send others', async (t) => {
  const { url } = await setUp(t)
  using client = new GrpcTestClient(url, { 'grpc.default_compression_algorithm': 2 })
  await assert.rejects(client.call(shouldRateLimit, requestOf(['user', 'a'])), { code: STATUS.unimplemented, details: /identity/ })
})

test('requests that are not gRPC receive 415', async (t) => {
  const { port } = await setUp(t)
  const session = await rawClient(t, port)
  const stream = session.request({ ':method': 'GET', ':path': '/' })
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 415)
})

test('health is SERVING for the server and its services, and NOT_SERVING once it drains', async (t) => {
  const { client, service } = await setUp(t)
  const statusOf = async (name: string) => (await client.call(Health.method.check, { service: name })).status
  assert.deepEqual([await statusOf(''), await statusOf(RateLimitService.typeName)], [1, 1])
  await assert.rejects(client.call(Health.method.check, { service: 'none' }), { code: STATUS.notFound })
  const { statuses } = await client.call(Health.method.list, {})
  assert.deepEqual(Object.keys(statuses).sort(), ['', RateLimitService.typeName, 'grpc.health.v1.Health'].sort())

  const watched: number[] = []
  const watch = client.client.makeServerStreamRequest(
    '/grpc.health.v1.Health/Watch',
    (service: string) => Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service }))),
    (bytes) => fromBinary(HealthCheckResponseSchema, bytes),
    '',
  )
  watch.on('error', () => {})
  watch.on('data', ({ status }) => watched.push(status))
  await once(watch, 'data')
  service.drain()
  await once(watch, 'data')
  assert.deepEqual(watched, [1, 2])
  assert.equal(await statusOf(''), 2)
})

test('reflection names the services and gives files that hold together, in both versions', async (t) => {
  const { client } = await setUp(t)
  for (const version of ['v1', 'v1alpha']) {
    const stream = client.client.makeBidiStreamRequest(
      `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
      (request: ReflectionRequest) => Buffer.from(toBinary(ServerReflectionRequestSchema, create(ServerReflectionRequestSchema, request))),
      (bytes) => fromBinary(ServerReflectionResponseSchema, bytes).messageResponse,
    )
    const ask = async (messageRequest: NonNullable<ReflectionRequest['messageRequest']>) => {
      stream.write({ messageRequest })
      return (await once(stream, 'data'))[0]
    }
    const { value: listed } = await ask({ case: 'listServices', value: '' })
    assert.ok(listed.service.some(({ name }: { name: string }) => name === RateLimitService.typeName))
    for (const symbol of [
      RateLimitService.typeName,
      PATH.slice(1).replace('/', '.'),
      'envoy.service.ratelimit.v3.RateLimitResponse.Code',
    ]) {
      const { value: found } = await ask({ case: 'fileContainingSymbol', value: symbol })
      const files = found.fileDescriptorProto.map((bytes: Uint8Array) => fromBinary(FileDescriptorProtoSchema, bytes))
      assert.equal(files[0].name, 'envoy/service/ratelimit/v3/rls.proto')
      const names = files.map(({ name }: { name: string }) => name)
      for (const { dependency } of files) for (const name of dependency) assert.ok(names.includes(name), name)
    }
    assert.equal((await ask({ case: 'fileByFilename', value: 'none.proto' })).case, 'errorResponse')
    stream.end()
    await once(stream, 'end')
  }
})

test('a call that may not be made ends before its request is read', async (t) => {
  const admit: GrpcServerOptions['admit'] = (_, { authorization }) => {
    if (authorization !== 'Bearer right') throw new GrpcError(STATUS.unauthenticated, 'no')
  }
  const { client } = await setUp(t, { admit })
  const metadata = new Metadata()
  await assert.rejects(client.call(shouldRateLimit, requestOf(['free', '1'])), { code: STATUS.unauthenticated })
  metadata.set('authorization', 'Bearer right')
  assert.equal((await client.call(shouldRateLimit, requestOf(['free', '1']), { metadata })).overallCode, 1)
})

test('a Unix socket serves as a port does', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'grpc-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const limits = new RateLimits(new Engine([]), envoyDomains('domain: edge\n'))
  const service = new GrpcService([rlsService(limits, new Access([]))], { guard: aGuard('grpc') })
  const url = await service.listen({ path: join(folder, 's') })
  t.after(() => service.stop(100))
  using client = new GrpcTestClient(url)
  assert.equal((await client.call(shouldRateLimit, requestOf(['free', '1']))).overallCode, 1)
})

test('with certificates calls are encrypted, and only clients of the authority are answered; one that leaves its handshake is closed', async (t) => {
  const { ca, server, client } = makeCertificates(t)
  const read = (file: string): Buffer => readFileSync(file)
  const tls = { cert: read(server.cert).toString(), key: read(server.key).toString(), clientCa: ca }
  const { url } = await setUp(t, { tls })
  assert.match(url, /^grpcs:/)
  const known = credentials.createSsl(Buffer.from(ca), read(client.key), read(client.cert))
  using trusted = new GrpcTestClient(url, {}, known)
  assert.equal((await trusted.call(shouldRateLimit, requestOf(['free', '1']))).overallCode, 1)
  using stranger = new GrpcTestClient(url, {}, credentials.createSsl(Buffer.from(ca)))
  await assert.rejects(stranger.call(shouldRateLimit, requestOf(['free', '1'])), { code: STATUS.unavailable })
  const { port } = await setUp(t, { tls, bounds: { headersMs: 200 } })
  const silent = connectTcp(port, '127.0.0.1')
  silent.on('error', () => {})
  silent.resume()
  await once(silent, 'close')
})

test('handshakes of gRPC that do not end take no room from others, and do not keep the service from stopping', async (t) => {
  const { ca, server } = makeCertificates(t)
  const tls = { cert: readFileSync(server.cert, 'utf8'), key: readFileSync(server.key, 'utf8'), clientCa: undefined }
  const { url, port, stop } = await setUp(t, { tls, bounds: { maxConnections: 8, headersMs: 3_600_000 } })
  const sockets = Array.from({ length: 10 }, (_, i) => {
    // Every second one ends its handshake, for another protocol, and stays.
    const raw = connectTcp(port, '127.0.0.1')
    const socket = i % 2 === 0 ? raw : connectTls({ socket: raw, ca, servername: 'localhost', ALPNProtocols: ['http/1.1'] })
    for (const each of [raw, socket]) each.on('error', () => {})
    t.after(() => raw.destroy())
    return raw.resume()
  })
  await until('handshakes beyond two are closed', () => sockets.filter(({ closed }) => closed).length >= 8)
  using client = new GrpcTestClient(url, {}, credentials.createSsl(Buffer.from(ca)))
  assert.equal((await client.call(shouldRateLimit, requestOf(['free', '1']))).overallCode, 1)
  client[Symbol.dispose]()
  await stop()
})

test('a storm of cancelled calls leaves nothing behind, and others are answered', async (t) => {
  const { client, url, service } = await setUp(t)
  using stormy = new GrpcTestClient(url)
  for (let wave = 0; wave < shortOrLong(4, 20); wave++) {
    const calls = Array.from({ length: 100 }, () => stormy.call(shouldRateLimit, requestOf(['free', '1']), { deadlineMs: 1 }))
    await Promise.allSettled(calls)
  }
  assert.equal((await client.call(shouldRateLimit, requestOf(['free', '1']))).overallCode, 1)
  while (service.traffic.inFlight > 0) await new Promise((resolve) => setImmediate(resolve))
})

test('a client that opens and resets streams without end loses its connection, and others are answered', async (t) => {
  const { client, port } = await setUp(t)
  const session = await rawClient(t, port)
  const closed = new Promise<void>((resolve) => session.once('close', resolve))
  for (let i = 0; i < 200_000 && !session.closed && !session.destroyed; i++) {
    openStream(session).close(8)
    if (i % 100 === 99) await new Promise((resolve) => setImmediate(resolve))
  }
  await closed
  assert.equal((await client.call(shouldRateLimit, requestOf(['free', '1']))).overallCode, 1)
})

test('a request that does not end in its time is cancelled', async (t) => {
  const { port, service } = await setUp(t, { bounds: { requestMs: 500 } })
  const session = await rawClient(t, port)
  const stream = openStream(session)
  stream.write(frameOf(['user', 'a']).subarray(0, 7))
  await once(stream, 'close')
  assert.equal(stream.rstCode, 8)
  assert.equal(service.traffic.inFlight, 0)
})

test('a client that does not read its responses loses its connection', async (t) => {
  const { port, service, client } = await setUp(t, { bounds: { requestMs: 500 } })
  const session = await rawClient(t, port, { initialWindowSize: 0 })
  for (let i = 0; i < 20; i++) openStream(session).end(frameOf(['free', '1']))
  await once(session, 'close')
  assert.equal(service.traffic.cuts.unread, 1)
  assert.equal((await client.call(shouldRateLimit, requestOf(['free', '1']))).overallCode, 1)
})

test('a connection that does not speak HTTP/2 is closed after the time for that', async (t) => {
  const { port, service } = await setUp(t, { bounds: { headersMs: 500 } })
  const socket = connectTcp(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  socket.resume()
  await once(socket, 'close')
  assert.equal(service.traffic.cuts.mute, 1)
})

/** The beginning of a connection of HTTP/2. */
const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
/** The head of a frame of 16 MB. */
const OVERSIZED = Buffer.from('ffffff000000000001', 'hex')

/** The frame that begins a call, on stream 1: POST, http, the path and the type. */
function callHeaders(): Buffer {
  const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)])
  const fields = Buffer.concat([Buffer.from([0x83, 0x86, 0x04]), text(PATH), Buffer.from([0x0f, 0x10]), text('application/grpc')])
  return Buffer.concat([Buffer.from([0, 0, fields.length, 1, 4, 0, 0, 0, 1]), fields])
}

/** The server's options with certificates, and without. */
function plainAndEncrypted(t: TestContext): Partial<GrpcServerOptions>[] {
  const { server } = makeCertificates(t)
  const [cert, key] = [server.cert, server.key].map((file) => readFileSync(file, 'utf8')) as [string, string]
  return [{}, { tls: { cert, key, clientCa: undefined } }]
}

longTest('a connection that breaks the protocol is closed in a moment, also with a call under way', async (t) => {
  const sent = [
    [PREFACE, OVERSIZED],
    [PREFACE, callHeaders(), OVERSIZED],
  ]
  const closed = plainAndEncrypted(t).map(async (options) => {
    const { port, service } = await setUp(t, options)
    const to = { port, host: '127.0.0.1' }
    const closes = sent.map((bytes) => {
      const socket = options.tls === undefined ? connectTcp(to) : connectTls({ ...to, ALPNProtocols: ['h2'], rejectUnauthorized: false })
      socket.on('error', () => {})
      t.after(() => socket.destroy())
      socket.resume().write(Buffer.concat(bytes))
      return once(socket, 'close')
    })
    await Promise.all(closes)
    assert.deepEqual([service.traffic.cuts.broken, service.traffic.open, service.traffic.inFlight], [2, 0, 0])
  })
  await Promise.all(closed)
})

longTest('a connection without calls that sends pings and settings stays open', async (t) => {
  const probed = plainAndEncrypted(t).map(async (options) => {
    const { port, service } = await setUp(t, options)
    const session = connect(`${options.tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`, { rejectUnauthorized: false })
    session.on('error', () => {})
    t.after(() => session.destroy())
    await once(session, 'remoteSettings')
    let probes = 0
    session.on('ping', () => probes++)
    while (probes < 3) {
      await new Promise<void>((resolve) => session.ping(() => resolve()))
      session.settings({ initialWindowSize: 65_535 + probes })
    }
    assert.deepEqual([service.traffic.cuts.broken, session.destroyed], [0, false])
  })
  await Promise.all(probed)
})

test('where connections run out, the one without calls for the longest makes room', async (t) => {
  const { port, service } = await setUp(t, { bounds: { maxConnections: 2, maxConnectionsPerAddress: 2 } })
  const first = await rawClient(t, port)
  const second = await rawClient(t, port)
  const firstClosed = once(first, 'close')
  await rawClient(t, port)
  await firstClosed
  assert.deepEqual([service.traffic.cuts.evicted, service.traffic.open, second.destroyed], [1, 2, false])
})

test('where all connections have calls, a new one is refused', async (t) => {
  const { port, service } = await setUp(t, { bounds: { maxConnectionsPerAddress: 1 } })
  const first = await rawClient(t, port)
  openStream(first).write(Buffer.alloc(1))
  await new Promise<void>((resolve) => first.ping(() => resolve()))
  const second = connect(`http://127.0.0.1:${port}`)
  second.on('error', () => {})
  await once(second, 'close')
  assert.deepEqual([service.traffic.cuts.refused, service.traffic.open], [1, 1])
})

test('calls beyond the bound of all connections end with RESOURCE_EXHAUSTED', async (t) => {
  const { port, client } = await setUp(t, { bounds: { maxCallsInAll: 3 } })
  const session = await rawClient(t, port)
  for (let i = 0; i < 3; i++) openStream(session).write(Buffer.alloc(1))
  await new Promise<void>((resolve) => session.ping(() => resolve()))
  await assert.rejects(client.call(shouldRateLimit, requestOf(['free', '1'])), { code: STATUS.resourceExhausted })
})

test('while it drains, calls are answered and clients are asked to leave; then it stops, with no call lost', async (t) => {
  const { client, service, stop } = await setUp(t)
  let answered = 0
  let isDraining = true
  const worker = async (): Promise<void> => {
    while (isDraining) {
      const { overallCode } = await client.call(shouldRateLimit, requestOf(['free', '1']))
      assert.equal(overallCode, 1)
      answered++
    }
  }
  const workers = Array.from({ length: 8 }, worker)
  while (answered < shortOrLong(30, 100)) await new Promise((resolve) => setImmediate(resolve))
  service.drain()
  const before = answered
  while (answered < before + shortOrLong(50, 500)) await new Promise((resolve) => setImmediate(resolve))
  isDraining = false
  await Promise.all(workers)
  await stop()
  assert.equal(service.traffic.open, 0)
})

test('the first call of a connection, on its way when the service stops, is answered; a connection without one is closed', async (t) => {
  const { port, stop } = await setUp(t)
  const [session, idle] = [await rawClient(t, port), await rawClient(t, port)]
  const stopped = stop()
  const stream = openStream(session)
  stream.end(frameOf(['free', '1']))
  stream.resume()
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  await stopped
  await until('the other connection is closed', () => idle.destroyed)
})

test('messages that do not end take bounded memory: the connection that adds more than there is room for is cut off', async (t) => {
  const { port, service, client } = await setUp(t, { bounds: { maxHeldBytes: 100_000 } })
  const prefix = framed(Buffer.alloc(60_000)).subarray(0, 20_000)
  const [small, greedy] = [await rawClient(t, port), await rawClient(t, port)]
  const open = (session: ClientHttp2Session): void => {
    const stream = session.request({ ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc' })
    stream.on('error', () => undefined)
    stream.write(prefix)
  }
  open(small)
  for (let i = 0; i < 6; i++) open(greedy)
  await once(greedy, 'close')
  assert.deepEqual([service.traffic.cuts.held, small.destroyed], [1, false])
  await client.call(shouldRateLimit, requestOf(['free', 'x']))
})

test('a stop finishes the calls that are being answered and cuts off the rest', async (t) => {
  const { port, service } = await setUp(t)
  const session = await rawClient(t, port)
  const stream = openStream(session)
  stream.write(frameOf(['free', '1']).subarray(0, 7))
  await new Promise<void>((resolve) => session.ping(() => resolve()))
  const stopped = service.stop(60_000)
  stream.end(frameOf(['free', '1']).subarray(7))
  stream.resume()
  const [headers] = await once(stream, 'response')
  assert.equal(headers[':status'], 200)
  session.close()
  await stopped
})
