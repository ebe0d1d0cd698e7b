import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import { quantile } from '../samples.js'
import { ATTACKS, type AttackOrder, type AttackReport } from './hostile-attacks.js'
import { type Received, send } from './many-connections.js'
import { type Cleanup, ended, type ServiceProcess, served, sluicegate } from './sluicegate-process.js'

const CALLERS_AT_ONCE = 8

/** What a proof may use. */
interface ProofRun extends Cleanup {
  readonly folder: string
  /** Below 1 for a short run. */
  readonly scale: number
}

/** `holds`, and what was measured. */
export type Verdict = { readonly holds: boolean } & Readonly<Record<string, unknown>>

const limitOf = (limit: number): string => `policies: { api: { algorithm: fixed-window, limit: ${limit}, window: year } }\n`

function fileOf({ folder }: ProofRun): string {
  return join(folder, 'gate.yaml')
}

function serve(run: ProofRun, yaml: string, ...flags: string[]): Promise<ServiceProcess> {
  writeFileSync(fileOf(run), yaml)
  return served(sluicegate(run, 'serve', '--config', fileOf(run), '--http', '127.0.0.1:0', ...flags))
}

/** What callers got that take from a service one after the other. */
interface Traffic {
  readonly latenciesMs: number[]
  /** New connections that were refused: a load balancer sends the request elsewhere. */
  refused: number
  /** Requests that a connection ended without an answer to, and answers above 499. */
  failed: number
  readonly failures: Set<string>
}

/** Starts callers, and returns what ends them. */
function startTraffic(url: string, callers = CALLERS_AT_ONCE): { traffic: Traffic; stop: () => Promise<Traffic> } {
  const traffic: Traffic = { latenciesMs: [], refused: 0, failed: 0, failures: new Set() }
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  let isOver = false
  const call = async (index: number): Promise<void> => {
    while (!isOver) {
      const startMs = performance.now()
      const outcome = await outcomeOf(send(url, `/v1/take?policy=api&key=caller-${index}`, { agent }))
      if (outcome === 'ECONNREFUSED') {
        traffic.refused++
        return
      }
      if (outcome === 'answered') traffic.latenciesMs.push(performance.now() - startMs)
      else {
        traffic.failed++
        traffic.failures.add(outcome)
      }
    }
  }
  const calls = Promise.all(Array.from({ length: callers }, (_, i) => call(i)))
  const stop = async (): Promise<Traffic> => {
    isOver = true
    await calls
    agent.destroy()
    return traffic
  }
  return { traffic, stop }
}

/** `answered`, or why not. */
function outcomeOf(sent: Promise<Received>): Promise<string> {
  return sent.then(
    ({ status }) => (status < 500 ? 'answered' : `status ${status}`),
    (error: NodeJS.ErrnoException) => error.code ?? String(error),
  )
}

const TIMES = 5
/** Of the capacity, what is answered under overload at least. */
const LEAST_GOODPUT = 0.8
const RECOVERY_MS = 1_000
/** How much slower a request may be after the recovery, for the noise of a machine. */
const RECOVERED = { times: 2, ms: 1 } as const
/** Of the closed loop that finds the capacity. */
const CALLERS = 64

/** Five times the capacity, over five times as many connections: at least 80 % of the capacity is answered, and a second later all is as before. */
async function overload(run: ProofRun): Promise<Verdict> {
  const seconds = Math.max(1, Math.round(8 * run.scale))
  const { url, metric } = await serve(run, limitOf(1_000_000_000))
  const load = async (...flags: string[]): Promise<LoadResult> =>
    JSON.parse((await ended(sluicegate(run, 'load', url, '--policy', 'api', '--warm-up', '1s', '--json', ...flags))).out) as LoadResult
  const capacities: number[] = []
  for (let i = 0; i <= 3; i++) {
    const { perSecond } = await load('--closed', `${CALLERS}`, '--connections', `${CALLERS}`, '--duration', `${Math.min(3, seconds)}s`)
    // The first run warms up the service.
    if (i > 0) capacities.push(perSecond)
  }
  const capacity = medianOf(capacities)
  const before = await probed(url)
  const [rate, connections] = [String(Math.round(capacity * TIMES)), String(CALLERS * TIMES)]
  const { perSecond, errors } = await load('--rate', rate, '--connections', connections, '--duration', `${seconds}s`, '--grace', '100ms')
  await sleep(RECOVERY_MS)
  const inFlight = await metric('sluicegate_requests_in_flight')
  const after = await probed(url)
  const goodput = perSecond / capacity
  const isRecovered = after.failed === 0 && after.p50Ms <= RECOVERED.times * before.p50Ms + RECOVERED.ms
  const holds = goodput >= LEAST_GOODPUT && isRecovered && inFlight <= 1
  return { holds, capacity: Math.round(capacity), offered: TIMES, goodput, errors, inFlight, beforeMs: before.p50Ms, afterMs: after.p50Ms }
}

/** One request after another, for half a second. */
async function probed(url: string): Promise<{ p50Ms: number; failed: number }> {
  const { stop } = startTraffic(url, 1)
  await sleep(500)
  const { latenciesMs, failed, refused } = await stop()
  return { p50Ms: medianOf(latenciesMs), failed: failed + refused }
}

function medianOf(values: readonly number[]): number {
  return quantile(Float64Array.from(values).sort(), 0.5)
}

const ATTACKER = fileURLToPath(new URL('./attacker.js', import.meta.url))
const MAX_RSS_MB = 400
/** A measurement of fewer seconds may end before the service looks for connections to close. */
const CLOSED_WITHIN_S = 5
/** Short times, so that offenders are closed while the proof looks. */
const CLIENTS = 'clients: { headers-timeout: 2s, read-timeout: 2s }\n'
/** Attacks after which the service closes all connections. */
const CLOSED: ReadonlySet<string> = new Set(['slowloris', 'oversizedCommands', 'oversizedFrames'])

/** Clients that are slow, silent or greedy, on all protocols: p99 of the others at most doubles, and memory is bounded. */
async function hostile(run: ProofRun): Promise<Verdict> {
  const { url, urls, rssBytes } = await serve(run, `${CLIENTS}${limitOf(1_000_000_000)}`, '--grpc', '127.0.0.1:0', '--resp', '127.0.0.1:0')
  const [http = 0, grpc = 0, resp = 0] = [new URL(url), urls.get('grpc'), urls.get('resp')].map((at) => Number(at?.port))
  const seconds = 10 * run.scale
  let peakRssMb = 0
  const besides: Record<string, unknown> = {}
  const measured = async (): Promise<number> => {
    const { stop } = startTraffic(url, 4)
    for (const endMs = performance.now() + seconds * 1_000; performance.now() < endMs; await sleep(50))
      peakRssMb = Math.max(peakRssMb, rssBytes() / 2 ** 20)
    const { latenciesMs, failed, refused } = await stop()
    if (failed + refused > 0) throw new Error(`${failed + refused} requests of others failed`)
    return quantile(
      latenciesMs.sort((a, b) => a - b),
      0.99,
    )
  }
  let holds = true
  for (const name of Object.keys(ATTACKS)) {
    const baseMs = await measured()
    const attack = await begun({ name, ports: { http, grpc, resp }, scale: run.scale })
    const p99Ms = await measured()
    const { closed, count } = await attack.end()
    besides[name] = { quietP99Ms: round(baseMs), p99Ms: round(p99Ms), ratio: round(p99Ms / baseMs), closed: `${closed} of ${count}` }
    if (p99Ms > 2 * baseMs || (CLOSED.has(name) && seconds >= CLOSED_WITHIN_S && closed < count)) holds = false
    await sleep(200)
  }
  return { holds: holds && peakRssMb <= MAX_RSS_MB, peakRssMb: Math.round(peakRssMb), ...besides }
}

/** Attacks in a process of their own: their work delays no other client. */
async function begun(order: AttackOrder): Promise<{ end(): Promise<AttackReport> }> {
  const child: ChildProcess = fork(ATTACKER)
  const report = async (): Promise<AttackReport> => {
    const [message] = (await once(child, 'message')) as [AttackReport]
    return message
  }
  child.send(order)
  await report()
  return {
    async end() {
      child.send('end')
      const last = await report()
      child.kill('SIGKILL')
      return last
    },
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

/** By name. */
export const SERVICE_PROOFS: Readonly<Record<string, (run: ProofRun) => Promise<Verdict>>> = { reloads, stops, kill, hostile, overload }

/** 1,000 files under load, every fifth of them broken: no request is dropped, and a broken file changes nothing. */
async function reloads(run: ProofRun): Promise<Verdict> {
  const files = Math.round(1_000 * run.scale)
  const { url, urls } = await serve(run, limitOf(1_000_000), '--admin', '127.0.0.1:0')
  const admin = urls.get('admin')?.origin ?? ''
  const { stop } = startTraffic(url)
  const statuses: Record<number, number> = {}
  let wrong = 0
  for (let i = 1; i <= files; i++) {
    const isBroken = i % 5 === 0
    writeFileSync(fileOf(run), isBroken ? 'policies: { api: { algorithm: no-such' : limitOf(1_000_000 + i))
    const { status } = await send(admin, '/v1/reload', { value: {} })
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
    const { url, end } = await serve(run, limitOf(1_000_000), '--drain', '100ms')
    const { traffic, stop } = startTraffic(url)
    while (traffic.latenciesMs.length < 50) await sleep(5)
    if ((await end('SIGTERM')) !== 0) unclean++
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
    const { url, metric, end } = await serve(run, yaml)
    const before = await spent(url)
    const { traffic, stop } = startTraffic(url, 1)
    const snapshotS = (): Promise<number> => metric('sluicegate_snapshot_last_success_timestamp_seconds')
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
    await end('SIGKILL')
    const { latenciesMs } = await stop()
    const taken = before + latenciesMs.length
    const next = await serve(run, yaml)
    const after = await spent(next.url)
    forgotten.push(taken - after)
    // One take may have been charged without an answer.
    if (after > taken + 1 || after < before + known) wrong++
    await next.end('SIGKILL')
  }
  return { holds: wrong === 0, rounds, wrong, forgotten }
}

async function spent(url: string): Promise<number> {
  const { body } = await send(url, '/v1/peek?policy=api&key=caller-0')
  return 100_000_000 - Number(body.remaining)
}
