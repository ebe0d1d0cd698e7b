import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import type { RateSpec } from '../oracle/oracle.js'

/** A take, and what a clock said before it was asked for and after it was answered: its decision lies between. */
export interface SeenTake {
  readonly beforeUs: number
  readonly afterUs: number
  readonly isAllowed: boolean
}

export interface Saturation {
  readonly limiter: { take(key: string): Decision | Promise<Decision> }
  readonly callers: number
  readonly forMs: number
  /** The clock by which it is judged, in microseconds. */
  nowUs(): number | Promise<number>
}

const KEY = 'the key'
/** Some hundred times a second each is far more than there is, and leaves others their time. */
const REST_MS = 1

/** Callers who ask about one key again and again until the clock says that it is over; all that they saw. */
export async function saturated({ limiter, callers, forMs, nowUs }: Saturation): Promise<SeenTake[]> {
  const seen: SeenTake[] = []
  // Connections, scripts and code are there when it begins.
  await limiter.take('another key')
  const untilUs = (await nowUs()) + forMs * 1000
  const caller = async (): Promise<void> => {
    let beforeUs = await nowUs()
    while (beforeUs < untilUs) {
      const { allowed: isAllowed } = await limiter.take(KEY)
      const afterUs = await nowUs()
      seen.push({ beforeUs, afterUs, isAllowed })
      beforeUs = afterUs
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return seen
}

/** The clock of the server that a client is connected to. */
export function serverClock(client: { sendCommand(command: string[]): Promise<unknown> }): () => Promise<number> {
  return async () => {
    const [seconds, us] = (await client.sendCommand(['TIME'])) as readonly [string, string]
    return Number(seconds) * 1e6 + Number(us)
  }
}

/** This machine's monotonic clock, the same in all processes. */
export function machineUs(): number {
  return Number(process.hrtime.bigint()) / 1000
}

/** What came of a saturated bucket, and the least and the most that had to. */
export interface Allowance {
  readonly admitted: number
  readonly least: number
  readonly most: number
}

/**
 * The bounds that follow from what callers saw, on a machine of any speed. Of a decision only two times are known between which it lies. What
 * came while a bucket was full is lost, and so is what a process had leased and slept over: both are seen from how far apart the takes are.
 *
 * @param seenBy of each process.
 * @param lentMs how long leases are, where there are any: by what flows back meanwhile a leased bucket is smaller.
 * @param pausedMs how long a process that got less than it asked for may leave the store alone: what came since then may still be there.
 */
export function allowanceOf(spec: RateSpec, seenBy: readonly (readonly SeenTake[])[], lentMs = 0, pausedMs = 0): Allowance {
  const { limit, windowMs, burst } = spec
  const tokensIn = (us: number): number => (limit * us) / (windowMs * 1000)
  const seen = seenBy.flat().sort((a, b) => a.beforeUs - b.beforeUs)
  const admissions = seen.filter(({ isAllowed }) => isAllowed).sort((a, b) => a.afterUs - b.afterUs)
  const firstUs = seen[0]?.beforeUs ?? 0
  const most = Math.floor(burst + tokensIn((admissions.at(-1)?.afterUs ?? firstUs) - firstUs))
  // At a denial less than a token was left: whatever had come until then was spent, or lost.
  const denied = seen.findLast(({ isAllowed }) => !isAllowed)
  if (denied === undefined) return { admitted: admissions.length, least: 1, most }
  const begunUs = seen.reduce((earliest, { afterUs }) => Math.min(earliest, afterUs), Number.POSITIVE_INFINITY)
  const came = burst - tokensIn(lentMs * 1000) + tokensIn(denied.beforeUs - pausedMs * 1000 - begunUs)
  const slept = seenBy.reduce((sum, takes) => sum + sleptOver(takes, lentMs, burst, tokensIn), 0)
  const lost = slept + overflowed(seen, admissions, (us) => tokensIn(us - firstUs))
  return { admitted: admissions.length, least: Math.max(1, Math.floor(came - lost)), most }
}

/** The most that did not fit into the bucket: by how much what had come was ahead, at some take, of what had been taken. */
function overflowed(seen: readonly SeenTake[], admissions: readonly SeenTake[], cameAt: (us: number) => number): number {
  let taken = 0
  let most = 0
  for (const { beforeUs, afterUs } of seen) {
    while ((admissions[taken]?.afterUs ?? Number.POSITIVE_INFINITY) <= beforeUs) taken++
    most = Math.max(most, cameAt(afterUs) - taken)
  }
  return most
}

/**
 * What a process may have held that ended before it asked again, as a lease is good for longer than half its length at least. After a denial
 * that is what was on its way, and what was due within a pause or was handed out ahead of its time.
 */
function sleptOver(takes: readonly SeenTake[], lentMs: number, burst: number, tokensIn: (us: number) => number): number {
  const halfUs = (lentMs * 1000) / 2
  if (halfUs === 0) return 0
  const inTime = [...takes].sort((a, b) => a.afterUs - b.afterUs)
  return inTime.slice(1).reduce((sum, { afterUs }, i) => {
    const last = inTime[i] as SeenTake
    const pauseUs = afterUs - last.afterUs
    if (pauseUs <= halfUs) return sum
    return sum + (last.isAllowed ? burst : 1) + tokensIn(pauseUs + halfUs)
  }, 0)
}
