import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as connectSocket, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { type Cleanup, type ServiceProcess, serveProcess } from 'sluicegate-testkit/service/sluicegate-process.js'

const METHODS = [
  '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas',
  '/grpc.health.v1.Health/Watch',
  '/grpc.health.v1.Health/Check',
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/sluicegate.v1.Limiter/Take',
  '/no/such',
]
const CUT_MESSAGE = Buffer.from([0, 0])
const EMPTY_MESSAGE = Buffer.alloc(5)

const YAML = 'listen: { port: 0, grpc: 127.0.0.1:0 }\npolicies: { api: { algorithm: gcra, limit: 5, window: 1s } }'

interface Opened {
  readonly service: ServiceProcess
  /** Of the connections, in their order. */
  readonly sockets: readonly Socket[]
  open(t: Cleanup): Promise<ClientHttp2Session>
}

/** The service is another process, as it is for a client: within one process the events of a dropped connection come in another order. */
async function setUp(t: Cleanup): Promise<Opened> {
  const service = await serveProcess(t, YAML)
  const sockets: Socket[] = []
  const open = async (user: Cleanup): Promise<ClientHttp2Session> => {
    const { port, hostname } = service.urls.get('grpc') ?? assert.fail()
    const socket = connectSocket(Number(port), hostname)
    sockets.push(socket)
    const session = connect(`http://${hostname}:${port}`, { createConnection: () => socket })
    session.on('error', () => {})
    user.after(() => session.destroy())
    await once(session, 'connect')
    return session
  }
  return { service, sockets, open }
}

function call(session: ClientHttp2Session, path: string): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
  stream.on('error', () => {})
  return stream
}

/** For all tests: the last one ends it. */
const opened = await setUp({ after })
const { open, sockets } = opened

/** The service has noticed that the connections are gone, has no call of theirs, and answers another client. */
async function goesOn(t: Cleanup, { service, open }: Opened): Promise<void> {
  // The request for the metrics is one itself.
  await until('the connections are gone', async () => (await service.metric('sluicegate_connections')) <= 1)
  assert.equal(await service.metric('sluicegate_requests_in_flight'), 1)
  const session = await open(t)
  const health = call(session, '/grpc.health.v1.Health/Check').end(EMPTY_MESSAGE).resume()
  const [{ ':status': status }] = (await once(health, 'response')) as [{ ':status': number }]
  const [{ 'grpc-status': grpcStatus }] = (await once(health, 'trailers')) as [{ 'grpc-status': string }]
  assert.deepEqual([status, grpcStatus], [200, '0'])
  assert.equal(await service.metric('sluicegate_protocol_faults_total', { protocol: 'grpc' }), 0)
}

for (const [when, drop] of Object.entries({
  'drops the connection': (session: ClientHttp2Session) => session.destroy(),
  'resets the connection': (_: ClientHttp2Session, socket: Socket) => socket.resetAndDestroy(),
  'closes its side': (_: ClientHttp2Session, socket: Socket) => socket.end(),
})) {
  test(`a client that has begun calls of every method and ${when} ends no service`, async (t) => {
    for (const path of METHODS) {
      const session = await open(t)
      for (let i = 0; i < 10; i++) call(session, path).write(CUT_MESSAGE)
      // Its answer comes when the calls have begun.
      await new Promise((resolve) => session.ping(resolve))
      drop(session, sockets.at(-1) as Socket)
    }
    await goesOn(t, opened)
  })
}

test('a client that drops the connection right behind whole requests ends no service', async (t) => {
  for (const path of METHODS) {
    const session = await open(t)
    for (let i = 0; i < 10; i++) call(session, path).end(EMPTY_MESSAGE)
    session.ping(() => session.destroy())
    await once(session, 'close')
  }
  await goesOn(t, opened)
})

test('the connection of an open stream drops while it is sent to, and the service goes on', async (t) => {
  const session = await open(t)
  const watching = Array.from({ length: 10 }, () => call(session, '/grpc.health.v1.Health/Watch'))
  await Promise.all(watching.map((stream) => once(stream.end(EMPTY_MESSAGE).resume(), 'data')))
  session.destroy()
  // Health is NOT_SERVING from now on: each watcher gets a message.
  assert.equal(await opened.service.end('SIGINT'), 0)
})
