import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type ClientHttp2Session, connect } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePorts, until } from 'sluicegate-testkit'
import { cpuMs } from './http-requests.js'
import type { ServerRun } from './server-run.js'
import { SLUICEGATE } from './service-process.js'

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

function call(session: ClientHttp2Session, frame: Buffer): Promise<void> {
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

/** A request of one descriptor, `user=KEY` in the domain `edge`, with the prefix of gRPC. */
function requestFrame(key: string): Buffer {
  const field = (number: number, payload: Buffer): Buffer => Buffer.concat([Buffer.from([number * 8 + 2, payload.length]), payload])
  const entry = Buffer.concat([field(1, Buffer.from('user')), field(2, Buffer.from(key))])
  const message = Buffer.concat([field(1, Buffer.from('edge')), field(2, field(1, entry))])
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

const ECHO = fileURLToPath(new URL('grpc-echo.js', import.meta.url))
const RULES = 'domain: edge\ndescriptors:\n  - { key: user, rate_limit: { unit: second, requests_per_unit: 1000000 } }\n'
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
