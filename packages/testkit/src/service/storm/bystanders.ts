import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { Agent } from 'node:http'
import { Agent as EncryptedAgent } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as encrypt } from 'node:tls'
import { credentials } from '@grpc/grpc-js'
import { Limiter } from 'sluicegate-server/dist/protocols/grpc/messages/sluicegate/v1/limiter.gen.js'
import { until } from '../../index.js'
import { commandBytes } from '../../servers/resp.js'
import { makeCertificates } from '../certificates.js'
import { send } from '../many-connections.js'
import { GrpcTestClient } from '../simulated-envoy.js'
import { type Cleanup, configFile, type ServiceProcess, served, sluicegateOn } from '../sluicegate-process.js'

/** A client that means no harm: each call rejects where the answer is not the right one. */
export interface Bystander {
  call(): Promise<void>
  close(): void
}

const LIMIT = 3
const ANSWER_MS = 30_000

/** Over each protocol one that keeps its connection, and over HTTP one that opens a new one for each call. Each has its keys. */
export async function bystanders({ urls, ca }: Pick<StormedService, 'urls' | 'ca'>): Promise<Bystander[]> {
  const agent = (options = {}): Agent => (ca === undefined ? new Agent(options) : new EncryptedAgent({ ...options, ca }))
  const kept = agent({ keepAlive: true, maxSockets: 1 })
  const others = [overHttp(urls.http, 'kept', () => kept), overHttp(urls.http, 'new', () => agent()), overGrpc(urls.grpc, ca)]
  return [...others, await overResp(urls.resp, { ca })]
}

/**
 * Those over gRPC and RESP, as the clients of a service behave that replaces a worker: what RESP has not answered when its connection is closed is called once
 * more over another. A call that was decided and not answered would be charged twice, and the answers wrong from then on.
 */
export async function reconnectingBystanders({ urls }: Pick<StormedService, 'urls'>): Promise<Bystander[]> {
  return [overGrpc(urls.grpc), await overResp(urls.resp, { reconnects: true })]
}

/** The calls of a key: as many as the policy allows, and one more. */
function inTurn(name: string, call: (key: string) => Promise<boolean>): () => Promise<void> {
  let nth = 0
  let key = ''
  return async () => {
    if (nth === 0) key = `${name} ${randomUUID()}`
    assert.equal(await call(key), nth < LIMIT, `call ${nth + 1} over ${name}, where ${LIMIT} are allowed`)
    nth = (nth + 1) % (LIMIT + 1)
  }
}

function overHttp(url: URL, name: string, agentOf: () => Agent): Bystander {
  const call = inTurn(`HTTP ${name}`, async (key) => {
    const path = `/v1/take?policy=bystanders&key=${encodeURIComponent(key)}`
    const { status, body } = await send(url.origin, path, { agent: agentOf() })
    assert.ok(status === 200 || status === 429, `status ${status}`)
    assert.equal(body.allowed, status === 200)
    return status === 200
  })
  return { call, close: () => agentOf().destroy() }
}

function overGrpc(url: URL, ca?: string): Bystander {
  const client = new GrpcTestClient(url.host, {}, ca === undefined ? undefined : credentials.createSsl(Buffer.from(ca)))
  const call = inTurn('gRPC', async (key) => {
    const { allowed } = await client.call(Limiter.method.take, { policy: 'bystanders', keys: [key], cost: 1n })
    return allowed
  })
  return { call, close: () => client[Symbol.dispose]() }
}

async function overResp(url: URL, { reconnects = false, ca }: { reconnects?: boolean; ca?: string | undefined } = {}): Promise<Bystander> {
  let socket = await connected(url, ca)
  const answered = async (command: Buffer): Promise<Buffer> => {
    const answer = await answerOver(socket, command)
    if (answer !== undefined) return answer
    assert.ok(reconnects, 'the service closed a connection of RESP')
    socket = await connected(url, ca)
    return answered(command)
  }
  const call = inTurn('RESP', async (key) => {
    const reply = (await answered(commandBytes('SG.TAKE', 'bystanders', key))).toString()
    assert.match(reply, /^\*5\r\n:[01]\r\n:3\r\n/)
    return reply.startsWith('*5\r\n:0')
  })
  return { call, close: () => socket.destroy() }
}

async function connected({ port, hostname: host }: URL, ca?: string): Promise<Socket> {
  const socket = ca === undefined ? connect(Number(port), host) : encrypt({ port: Number(port), host, ca })
  await once(socket, ca === undefined ? 'connect' : 'secureConnect')
  socket.on('error', () => undefined)
  return socket
}

/** Undefined where the connection closed before the answer. */
function answerOver(socket: Socket, command: Buffer): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => end(() => reject(new Error('RESP gave no answer'))), ANSWER_MS)
    const onData = (reply: Buffer): void => end(() => resolve(reply))
    const onClose = (): void => end(() => resolve(undefined))
    const end = (settle: () => void): void => {
      clearTimeout(late)
      socket.off('data', onData).off('close', onClose)
      settle()
    }
    socket.on('data', onData).on('close', onClose)
    if (socket.destroyed) onClose()
    else socket.write(command)
  })
}

const YAML = `listen: { port: 0, grpc: 127.0.0.1:0, resp: 127.0.0.1:0, admin: 127.0.0.1:0 }
policies:
  api: { algorithm: token-bucket, limit: 10, window: 1m }
  slots: { algorithm: concurrency, limit: 3, ttl: 5s }
  both: { all-of: [{ name: x, algorithm: gcra, limit: 5, window: 1s }, { name: y, algorithm: fixed-window, limit: 30, window: 1h }] }
  bystanders: { algorithm: token-bucket, limit: 3, window: 30d }
`
/** A service without a storm has about 65 MB. */
const MAX_RSS_BYTES = 300 * 1_048_576

/** A service with all its listeners, in its own process. */
export interface StormedService {
  readonly service: ServiceProcess
  readonly urls: Readonly<Record<'http' | 'grpc' | 'resp' | 'admin', URL>>
  /** The authority of its certificate; undefined where its connections are not encrypted. */
  readonly ca: string | undefined
  /** What it has written to its log so far. */
  log(): string
  /** Fails unless it is as it was before: no connection, call or file is left open, and no fault was caught. */
  isAsBefore(): Promise<void>
}

/** The flag of a service whose connections are encrypted, with a certificate of its own. */
export const ENCRYPTED = 'encrypted'

/** @param node the program, or the program and its options. @param flags options of the service, and {@link ENCRYPTED}. */
export async function stormedService(t: Cleanup, node: string | readonly string[], ...flags: string[]): Promise<StormedService> {
  const { ca, server } = flags.includes(ENCRYPTED) ? makeCertificates(t) : {}
  const yaml = server === undefined ? YAML : `${YAML}tls: { cert: ${server.cert}, key: ${server.key} }\n`
  const child = sluicegateOn(node, t, 'serve', '--config', configFile(t, yaml), ...flags.filter((flag) => flag !== ENCRYPTED))
  let log = ''
  child.stderr.on('data', (text) => {
    log += text
  })
  const service = await served(child, ca)
  const url = (name: string): URL => service.urls.get(name) ?? assert.fail(`${name} does not listen`)
  const files = (): number => readdirSync(`/proc/${child.pid}/fd`).length
  await service.metric('sluicegate_connections')
  const filesBefore = files()
  const isQuiet = async (): Promise<boolean> =>
    // The request for the metrics is one itself.
    (await service.metric('sluicegate_connections')) <= 1 && (await service.metric('sluicegate_requests_in_flight')) <= 1
  return {
    service,
    urls: { http: new URL(service.url), grpc: url('grpc'), resp: url('resp'), admin: url('admin') },
    ca,
    log: () => log,
    async isAsBefore() {
      assert.equal(child.exitCode, null, `the service ended: ${log}`)
      await until('no connection or call is left', isQuiet)
      // One for the metrics.
      await until('no file is left open', () => files() <= filesBefore + 1)
      for (const protocol of ['http', 'grpc', 'resp', 'admin'])
        assert.equal(await service.metric('sluicegate_protocol_faults_total', { protocol }), 0, log)
      assert.ok(service.rssBytes() < MAX_RSS_BYTES, `${service.rssBytes()} bytes of memory`)
      assert.doesNotMatch(log, /"level":50/)
    },
  }
}
