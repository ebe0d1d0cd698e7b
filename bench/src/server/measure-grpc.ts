import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { freePorts, RedisProcess, until } from 'sluicegate-testkit'
import { bucketScript, SERVER_NOW } from '../redis/bucket.js'
import { redisBenchmark } from './generators.js'
import { cpuMs } from './measure-http.js'
import { type ServerRun, ServiceProcess, SLUICEGATE } from './service-process.js'

const run = promisify(execFile)

const PIPELINES = [1, 16, 64] as const
const RESP_CONNECTIONS = 50
/** Keys that the calls choose from. */
const KEYS = 100_000
const KEY = 'key:__rand_int__'
/** 16 at once, then 30 a minute: most calls are denied. */
const [MAX_BURST, COUNT, PERIOD_S] = ['15', '30', '60']
const US_PER_TOKEN = '2000000'
const US_OF_BURST = '32000000'
const WARM_UP_REQUESTS = 50_000

/** Requests a second of each round, at one depth of pipelining. */
export interface RespFigure {
  readonly pipelined: number
  readonly throttle: readonly number[]
  readonly set: readonly number[]
  readonly script: readonly number[]
}

export interface RespEffort {
  readonly rounds: number
  /** Of each run, at the deepest pipelining; a quarter of them without. */
  readonly requests: number
}

/** redis-benchmark against the service and redis-server, one after the other in each round, on 100,000 keys. */
export async function measureResp({ rounds, requests }: RespEffort): Promise<RespFigure[]> {
  const redis = await RedisProcess.start()
  const service = await ServiceProcess.start()
  try {
    const sha = (await run('redis-cli', ['-p', `${redis.port}`, 'SCRIPT', 'LOAD', bucketScript(SERVER_NOW)])).stdout.trim()
    const contenders: readonly (readonly [name: 'throttle' | 'set' | 'script', port: number, command: readonly string[]])[] = [
      ['throttle', service.respPort, ['CL.THROTTLE', KEY, MAX_BURST, COUNT, PERIOD_S]],
      ['set', redis.port, ['SET', KEY, '1']],
      ['script', redis.port, ['EVALSHA', sha, '1', KEY, US_PER_TOKEN, US_OF_BURST]],
    ]
    const figures: RespFigure[] = []
    for (const [, port, command] of contenders) await perSecond(port, command, 16, WARM_UP_REQUESTS)
    for (const pipelined of PIPELINES) {
      const of = { throttle: [] as number[], set: [] as number[], script: [] as number[] }
      for (let round = 0; round < rounds; round++) {
        for (const [name, port, command] of contenders) {
          of[name].push(await perSecond(port, command, pipelined, pipelined === 1 ? Math.ceil(requests / 4) : requests))
        }
      }
      figures.push({ pipelined, ...of })
    }
    return figures
  } finally {
    await service.stop()
    await redis.stop()
  }
}

async function perSecond(port: number, command: readonly string[], pipelined: number, requests: number): Promise<number> {
  return (await redisBenchmark(port, command, { connections: RESP_CONNECTIONS, pipelined, requests, keys: KEYS })).perSecond
}

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const HEADERS = { ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers' }

/** Calls of a closed loop: `outstanding` at a time on each of `connections`, until `count` have been answered. Returns calls a second. */
async function callsPerSecond(port: number, count: number, connections: number, outstanding: number): Promise<number> {
  const sessions = Array.from({ length: connections }, () => connect(`http://127.0.0.1:${port}`))
  // The error of a connection is that of its calls as well.
  for (const session of sessions) session.on('error', () => {})
  let left = count
  const loop = async (session: ClientHttp2Session, key: string): Promise<void> => {
    const frame = requestFrame(key)
    while (left-- > 0) await call(session, frame)
  }
  const startMs = performance.now()
  await Promise.all(sessions.flatMap((session, i) => Array.from({ length: outstanding }, (_, j) => loop(session, `user-${i}-${j}`))))
  const perSecond = count / ((performance.now() - startMs) / 1_000)
  for (const session of sessions) session.destroy()
  return perSecond
}

/** One call of {@link PATH}. */
export function call(session: ClientHttp2Session, frame: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(HEADERS)
    let answered = false
    stream.on('data', () => {
      answered = true
    })
    stream.once('error', reject)
    stream.once('end', () => (answered ? resolve() : reject(new Error('a call had no response'))))
    stream.end(frame)
  })
}

/** A request of one descriptor for each of the keys, `user=KEY` in the domain `edge`, with the prefix of gRPC. */
export function requestFrame(...keys: readonly string[]): Buffer {
  const entry = (key: string): Buffer => Buffer.concat([field(1, Buffer.from('user')), field(2, Buffer.from(key))])
  const message = Buffer.concat([field(1, Buffer.from('edge')), ...keys.map((key) => field(2, field(1, entry(key))))])
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** A field of protobuf with bytes, fewer than 128. */
function field(number: number, payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from([number * 8 + 2, payload.length]), payload])
}

const ECHO = fileURLToPath(new URL('grpc-echo.js', import.meta.url))
/** A limit for each user of the domain `edge`. */
export const RULES = 'domain: edge\ndescriptors:\n  - { key: user, rate_limit: { unit: second, requests_per_unit: 1000000 } }\n'
const CONNECTIONS = 4
const WARM_UP_CALLS = 5_000

/** `outstanding`: calls at a time, on each of four connections. */
export type GrpcEffort = Readonly<Record<'rounds' | 'calls' | 'outstanding', number>>

/** The service and a bare server, one after the other in each round. */
export async function measureGrpc({ rounds, calls, outstanding }: GrpcEffort): Promise<Record<'service' | 'echo', ServerRun[]>> {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-bench-'))
  const file = join(folder, 'rules.yaml')
  writeFileSync(file, RULES)
  const [port = 0] = await freePorts(1)
  const service = start([SLUICEGATE, 'serve', '--config', file, '--http', 'off', '--grpc', `127.0.0.1:${port}`])
  const echo = start([ECHO])
  const runs: Record<'service' | 'echo', ServerRun[]> = { service: [], echo: [] }
  try {
    const [printed] = await once(echo.stdout as NodeJS.ReadableStream, 'data')
    const servers = [
      ['service', service, port],
      ['echo', echo, Number(printed)],
    ] as const
    await until('both answer', () => answers(servers.map(([, , each]) => each)))
    for (const [, , each] of servers) await callsPerSecond(each, WARM_UP_CALLS, CONNECTIONS, outstanding)
    for (let round = 0; round < rounds; round++) {
      for (const [name, child, each] of servers) {
        const beforeMs = cpuMs(child)
        const perSecond = await callsPerSecond(each, calls, CONNECTIONS, outstanding)
        runs[name].push({ perSecond, cpuUs: ((cpuMs(child) - beforeMs) * 1_000) / calls })
      }
    }
    return runs
  } finally {
    for (const child of [service, echo]) {
      child.kill('SIGKILL')
      await once(child, 'close')
    }
    rmSync(folder, { recursive: true })
  }
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
}

async function answers(ports: readonly number[]): Promise<boolean> {
  const tries = await Promise.allSettled(ports.map((port) => callsPerSecond(port, 1, 1, 1)))
  return tries.every(({ status }) => status === 'fulfilled')
}
