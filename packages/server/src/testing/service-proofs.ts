import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { overload } from './overload-proof.js'
import { limitOf, metric, type ProofRun, serve, startTraffic, type Verdict } from './proof-service.js'

const MAX_RSS_MB = 400
/** A measurement of fewer seconds may end before the service looks for connections to close. */
const CLOSED_WITHIN_S = 5
/** Short times, so that offenders are closed while the proof looks. */
const CLIENTS = 'clients: { headers-timeout: 2s, read-timeout: 2s }\n'
/** Attacks after which the service closes all connections. */
const CLOSED: ReadonlySet<string> = new Set(['slowloris', 'oversizedCommands', 'oversizedFrames'])
/** The preface of HTTP/2, empty settings, and a frame of data of 16 MiB. */
const OVERSIZED_FRAME = `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\xff\xff\xff\0\0\0\0\0\x01`

/** By name. */
export const SERVICE_PROOFS: Readonly<Record<string, (run: ProofRun) => Promise<Verdict>>> = { reloads, stops, kill, hostile, overload }

/** 1,000 files under load, every fifth of them broken: no request is dropped, and a broken file changes nothing. */
async function reloads(run: ProofRun): Promise<Verdict> {
  const files = Math.round(1_000 * run.scale)
  const { url, text } = await serve(run, limitOf(1_000_000), '--admin', '127.0.0.1:0')
  const admin = /admin: (\S+)/.exec(text)?.[1] ?? ''
  const file = join(run.folder, 'gate.yaml')
  const { stop } = startTraffic(url)
  const statuses: Record<number, number> = {}
  let wrong = 0
  for (let i = 1; i <= files; i++) {
    const isBroken = i % 5 === 0
    writeFileSync(file, isBroken ? 'policies: { api: { algorithm: no-such' : limitOf(1_000_000 + i))
    const { status } = await fetch(`${admin}/v1/reload`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' })
    statuses[status] = (statuses[status] ?? 0) + 1
    if (isBroken === status < 300) wrong++
  }
  const { latenciesMs, failed, refused, failures } = await stop()
  const holds = failed + refused + wrong === 0 && latenciesMs.length > 0
  return { holds, files, statuses, wrong, answered: latenciesMs.length, failed: failed + refused, failures: [...failures] }
}

/** 50 services that receive SIGTERM under load: every request that reached one is answered, and the exit code is 0. */
async function stops(run: ProofRun): Promise<Verdict> {
  const rounds = Math.max(1, Math.round(50 * run.scale))
  let [answered, failed, refused, unclean] = [0, 0, 0, 0]
  const failures = new Set<string>()
  for (let round = 0; round < rounds; round++) {
    const { url, child, ended } = await serve(run, limitOf(1_000_000), '--drain', '100ms')
    const { traffic, stop } = startTraffic(url)
    while (traffic.latenciesMs.length < 50) await sleep(5)
    child.kill('SIGTERM')
    const [code] = (await ended) as [number | null]
    if (code !== 0) unclean++
    await stop()
    answered += traffic.latenciesMs.length
    failed += traffic.failed
    refused += traffic.refused
    for (const failure of traffic.failures) failures.add(failure)
  }
  return {
    holds: failed + unclean === 0,
    rounds,
    answered,
    failed,
    failures: [...failures],
    uncleanExits: unclean,
    refusedAfterwards: refused,
  }
}

/** kill -9 under load, and a start from the snapshot: what is forgotten is at most what was taken since the snapshot was written. */
async function kill(run: ProofRun): Promise<Verdict> {
  const rounds = Math.max(1, Math.round(10 * run.scale))
  const yaml = `snapshot: { file: "${join(run.folder, 'keys')}", every: 1s }\n${limitOf(100_000_000)}`
  let wrong = 0
  const forgotten: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { url, child, ended } = await serve(run, yaml)
    const before = await spent(url)
    const { traffic, stop } = startTraffic(url, 1)
    const snapshotS = (): Promise<number> => metric(url, 'sluicegate_snapshot_last_success_timestamp_seconds')
    // The second of two snapshots holds every take that was answered before the first one was written.
    let known = 0
    let seenS = await snapshotS()
    for (let written = 0; written < 2; ) {
      const answered = traffic.latenciesMs.length
      const nowS = await snapshotS()
      if (nowS > seenS) written++
      else if (written === 0) known = answered
      seenS = nowS
      await sleep(20)
    }
    child.kill('SIGKILL')
    await ended
    const { latenciesMs } = await stop()
    const taken = before + latenciesMs.length
    const next = await serve(run, yaml)
    const after = await spent(next.url)
    forgotten.push(taken - after)
    // One take may have been charged without an answer.
    if (after > taken + 1 || after < before + known) wrong++
    next.child.kill('SIGKILL')
    await next.ended
  }
  return { holds: wrong === 0, rounds, wrong, forgotten }
}

async function spent(url: string): Promise<number> {
  const { remaining } = (await (await fetch(`${url}/v1/peek?policy=api&key=caller-0`)).json()) as { remaining: number }
  return 100_000_000 - remaining
}

/** Clients that are slow, silent or greedy, on all protocols: p99 of the others at most doubles, and memory is bounded. */
async function hostile(run: ProofRun): Promise<Verdict> {
  const { url, text, child } = await serve(run, `${CLIENTS}${limitOf(1_000_000_000)}`, '--grpc', '127.0.0.1:0', '--resp', '127.0.0.1:0')
  const port = (scheme: RegExp): number => Number(scheme.exec(text)?.[1])
  const ports = { http: Number(new URL(url).port), grpc: port(/grpcs?:\/\/[^\s:]+:(\d+)/), resp: port(/redis:\/\/[^\s:]+:(\d+)/) }
  const seconds = 10 * run.scale
  let peakRssMb = 0
  const besides: Record<string, unknown> = {}
  const measured = async (): Promise<number> => {
    const { stop } = startTraffic(url, 4)
    for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; await sleep(50))
      peakRssMb = Math.max(peakRssMb, rssMb(child))
    const { latenciesMs, failed, refused } = await stop()
    if (failed + refused > 0) throw new Error(`${failed + refused} requests of others failed`)
    return p99(latenciesMs)
  }
  let holds = true
  for (const [name, attack] of Object.entries(attacks(ports, run))) {
    const baseMs = await measured()
    const { end, closed, count } = await attack()
    const p99Ms = await measured()
    besides[name] = { quietP99Ms: round(baseMs), p99Ms: round(p99Ms), ratio: round(p99Ms / baseMs), closed: `${closed()} of ${count}` }
    if (p99Ms > 2 * baseMs || (CLOSED.has(name) && seconds >= CLOSED_WITHIN_S && closed() < count)) holds = false
    end()
    await sleep(200)
  }
  return { holds: holds && peakRssMb <= MAX_RSS_MB, peakRssMb: Math.round(peakRssMb), ...besides }
}

interface Attack {
  end(): void
  readonly count: number
  /** Connections that the service has closed. */
  closed(): number
}

type Ports = Readonly<Record<'http' | 'grpc' | 'resp', number>>

function attacks(ports: Ports, { scale }: ProofRun): Readonly<Record<string, () => Promise<Attack>>> {
  const idle = Math.round(1_000 * scale)
  return {
    idle: () => sockets(ports.http, idle, (socket) => socket.resume()),
    slowloris: () => sockets(ports.http, 200, trickle('GET /v1/peek?policy=api&key=a HTTP/1.1\r\nHost: a\r\n')),
    unreadAnswers: () => sockets(ports.http, 20, (socket) => flood(socket, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(100))),
    unreadReplies: () => sockets(ports.resp, 20, (socket) => flood(socket, 'PING\r\n'.repeat(2_000))),
    oversizedCommands: () => sockets(ports.resp, 20, (socket) => socket.resume().write('*3\r\n$99999999999\r\n')),
    oversizedFrames: () => sockets(ports.grpc, 20, (socket) => socket.resume().write(OVERSIZED_FRAME, 'latin1')),
    rapidReset: () => rapidReset(ports.grpc),
  }
}

async function sockets(port: number, count: number, use: (socket: Socket) => void): Promise<Attack> {
  let closed = 0
  const all = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.once('close', () => closed++)
      await once(socket, 'connect')
      return socket
    }),
  )
  for (const socket of all) use(socket)
  const end = (): void => {
    for (const socket of all) socket.destroy()
  }
  return { count, closed: () => closed, end }
}

/** A byte every 50 ms. */
function trickle(text: string): (socket: Socket) => void {
  return (socket) => {
    socket.resume()
    let at = 0
    const timer = setInterval(() => socket.write(text[at++ % text.length] as string), 50)
    socket.once('close', () => clearInterval(timer))
  }
}

/** Sends for as long as the service reads, and reads nothing. */
function flood(socket: Socket, batch: string): void {
  socket.pause()
  const write = (): void => {
    while (!socket.destroyed && socket.write(batch));
  }
  socket.on('drain', write)
  write()
}

async function rapidReset(port: number): Promise<Attack> {
  let closed = 0
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  session.once('close', () => closed++)
  const timer = setInterval(() => {
    for (let i = 0; i < 50 && !session.closed && !session.destroyed; i++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
        'content-type': 'application/grpc',
      })
      stream.on('error', () => undefined)
      stream.close(8)
    }
  }, 10)
  return {
    count: 1,
    closed: () => closed,
    end() {
      clearInterval(timer)
      session.destroy()
    },
  }
}

function rssMb({ pid }: ChildProcessWithoutNullStreams): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

function p99(latenciesMs: number[]): number {
  return latenciesMs.sort((a, b) => a - b)[Math.floor(latenciesMs.length * 0.99)] ?? Number.NaN
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}
