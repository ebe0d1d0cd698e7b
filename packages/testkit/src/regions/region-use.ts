import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { encodingsOf, type PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import { LeaseRecords } from '../leases/lease-records.js'
import { Random } from '../random.js'
import { type PoolRules, SOUND_POOL } from './pool-twin.js'
import { RegionWorld } from './region-world.js'

/** Demand of one region at a time, in takes a second. */
export type DemandOf = (second: number) => number

export interface UseSetup {
  readonly policy: Policy
  /** One way to the home, in milliseconds, for each region. */
  readonly delaysMs: readonly number[]
  readonly demand: readonly DemandOf[]
  readonly seconds: number
  /** Seconds at the beginning that are not counted. */
  readonly warmUpS: number
  readonly seed: number
  readonly pool?: PoolRules
  /** What else happens, planned before the world runs. */
  readonly plan?: (world: RegionWorld) => void
}

/** What came of a demand. */
export interface RegionUse {
  /** Tokens that passed, in all and by region and second, and what one store would have admitted of the same takes. */
  readonly admitted: number
  readonly exact: number
  readonly bySecond: readonly (readonly number[])[]
  readonly askedBySecond: readonly (readonly number[])[]
  /** Calls to the home, a second and region. */
  readonly messages: number
  /** The same of all regions by second, those of the beginning too. */
  readonly callsBySecond: readonly number[]
  /** Microseconds that takes waited: median and 99th percentile. */
  readonly p50Us: number
  readonly p99Us: number
  readonly over: number
}

const SECOND_US = 1_000_000

/** A demand at random times, with a mean that may change, in virtual time. */
export async function regionUse({
  policy,
  delaysMs,
  demand,
  seconds,
  warmUpS,
  seed,
  pool = SOUND_POOL,
  plan,
}: UseSetup): Promise<RegionUse> {
  const random = new Random(seed)
  const regions = delaysMs.map((delayMs) => ({ link: { delayUs: delayMs * 1000, jitterUs: delayMs * 100 } }))
  const world = new RegionWorld({ policy, regions, random, pool, offsetUs: 3_600 * SECOND_US, skew: 500 })
  plan?.(world)
  const encoding = encodingsOf(policy).encodings[0] as PolicyEncoding
  const store = new LeaseRecords(encoding.name)
  const grid = (): number[][] => delaysMs.map(() => Array.from({ length: seconds }, () => 0))
  const asked = grid()
  const before = { messages: 0, waits: delaysMs.map(() => 0) }
  let exact = 0
  for (const [i, region] of world.regions.entries()) {
    const perSecond = demand[i] as DemandOf
    for (let atUs = 0; ; ) {
      const pace = perSecond(Math.floor(atUs / SECOND_US))
      atUs += pace > 0 ? Math.ceil(random.exponential(SECOND_US / pace)) : SECOND_US
      if (atUs >= seconds * SECOND_US) break
      if (pace === 0) continue
      const second = Math.floor(atUs / SECOND_US)
      world.time.inUs(atUs, () => {
        ;(asked[i] as number[])[second] = ((asked[i] as number[])[second] as number) + 1
        if (store.take(encoding, world.time.nowUs, 1).allowed && second >= warmUpS) exact++
        region.take('k', 1)
      })
    }
  }
  const callsUntil: number[] = []
  for (let second = 0; second <= seconds; second++) world.time.inUs(second * SECOND_US, () => callsUntil.push(messagesOf(world)))
  world.time.inUs(warmUpS * SECOND_US, () => {
    before.messages = messagesOf(world)
    before.waits = world.regions.map(({ record }) => record.waitsUs.length)
  })
  await world.run((seconds + 2) * SECOND_US)
  const bySecond = grid()
  for (const [i, { record }] of world.regions.entries()) {
    for (const { atUs, cost } of [...record.taken, ...record.atHome]) {
      const second = Math.floor(atUs / SECOND_US)
      if (second < seconds) (bySecond[i] as number[])[second] = ((bySecond[i] as number[])[second] as number) + cost
    }
  }
  const waits = world.regions.flatMap(({ record }, i) => record.waitsUs.slice(before.waits[i])).toSorted((a, b) => a - b)
  const admitted = bySecond.reduce((sum, row) => sum + row.slice(warmUpS).reduce((all, each) => all + each, 0), 0)
  return {
    admitted,
    exact,
    bySecond,
    askedBySecond: asked,
    messages: (messagesOf(world) - before.messages) / (seconds - warmUpS) / delaysMs.length,
    callsBySecond: callsUntil.slice(1).map((calls, second) => calls - (callsUntil[second] ?? 0)),
    p50Us: waits[Math.floor(waits.length / 2)] ?? 0,
    p99Us: waits[Math.floor(waits.length * 0.99)] ?? 0,
    over: admitted - exact,
  }
}

function messagesOf(world: RegionWorld): number {
  return world.regions.reduce((sum, { messages }) => sum + messages, 0)
}
