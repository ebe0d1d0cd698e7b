import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { limitOf, metric, type ProofRun, serve, startTraffic, type Verdict } from './proof-service.js'
import { MAIN } from './sluicegate-process.js'

const TIMES = 5
/** Of the capacity, what is answered under overload at least. */
const LEAST_GOODPUT = 0.8
const RECOVERY_MS = 1_000
/** How much slower a request may be after the recovery, for the noise of a machine. */
const RECOVERED = { times: 2, ms: 1 } as const
/** Of the closed loop that finds the capacity. */
const CALLERS = 64

/** Five times the capacity, over five times as many connections: at least 80 % of the capacity is answered, and a second later all is as before. */
export async function overload(run: ProofRun): Promise<Verdict> {
  const seconds = Math.max(1, Math.round(8 * run.scale))
  const { url } = await serve(run, limitOf(1_000_000_000))
  const load = async (...flags: readonly string[]): Promise<LoadResult> => {
    const { stdout } = await promisify(execFile)(process.execPath, [
      MAIN,
      'load',
      url,
      '--policy',
      'api',
      '--warm-up',
      '1s',
      '--json',
      ...flags,
    ])
    return JSON.parse(stdout) as LoadResult
  }
  const capacities: number[] = []
  for (let i = 0; i <= 3; i++) {
    const { perSecond } = await load('--closed', `${CALLERS}`, '--connections', `${CALLERS}`, '--duration', `${Math.min(3, seconds)}s`)
    // The first run warms up the service.
    if (i > 0) capacities.push(perSecond)
  }
  const capacity = medianOf(capacities)
  const before = await probed(url)
  const { perSecond, errors } = await load(
    '--rate',
    String(Math.round(capacity * TIMES)),
    '--connections',
    String(CALLERS * TIMES),
    '--duration',
    `${seconds}s`,
    '--grace',
    '100ms',
  )
  await sleep(RECOVERY_MS)
  const inFlight = await metric(url, 'sluicegate_requests_in_flight')
  const after = await probed(url)
  const goodput = perSecond / capacity
  const isRecovered = after.failed === 0 && after.p50Ms <= RECOVERED.times * before.p50Ms + RECOVERED.ms
  const holds = goodput >= LEAST_GOODPUT && isRecovered && inFlight <= 1
  return { holds, capacity: Math.round(capacity), offered: TIMES, goodput, errors, inFlight, beforeMs: before.p50Ms, afterMs: after.p50Ms }
}

interface LoadResult {
  readonly perSecond: number
  readonly errors: number
}

/** One request after another, for half a second. */
async function probed(url: string): Promise<{ p50Ms: number; failed: number }> {
  const { stop } = startTraffic(url, 1)
  await sleep(500)
  const { latenciesMs, failed, refused } = await stop()
  return { p50Ms: medianOf(latenciesMs), failed: failed + refused }
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.POSITIVE_INFINITY
}
