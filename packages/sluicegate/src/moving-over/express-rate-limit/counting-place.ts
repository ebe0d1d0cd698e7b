import { onceInProcess } from '../../once-in-process.js'
import type { LimiterVerbs } from '../limiter-verbs.js'

/** Where stores count: the memory of limiters that share one, or a limiter itself. */
export type CountingPlace = object

/** What the handle of a limiter in memory has; that of several policies has it in its parts. */
interface MemoryHandle {
  readonly memory?: object
  readonly parts?: readonly { readonly memory?: object }[]
}

/** How many stores of this thread count in each place. */
const stores = /* @__PURE__ */ onceInProcess('counting places', () => new WeakMap<CountingPlace, number>())

/** Whether a limiter is in the memory of this process: what is in a store or another process has no snapshot. */
export function isHere(limiter: LimiterVerbs): boolean {
  return 'snapshot' in limiter
}

/** A store begins to count by this limiter. @returns where, or undefined where other processes count as well. */
export function joinedPlace(limiter: LimiterVerbs): CountingPlace | undefined {
  if (!isHere(limiter)) return undefined
  const place = placeOf(limiter as LimiterVerbs & { handle?(): MemoryHandle })
  stores.set(place, (stores.get(place) ?? 0) + 1)
  return place
}

/** Whether one store alone counts there. */
export function isAlone(place: CountingPlace): boolean {
  return stores.get(place) === 1
}

/** Two limiters may be two ends of one count, as those that were attached are: what they share is the memory. */
function placeOf(limiter: LimiterVerbs & { handle?(): MemoryHandle }): CountingPlace {
  try {
    const { memory, parts } = limiter.handle?.() ?? {}
    return memory ?? parts?.[0]?.memory ?? limiter
  } catch {
    // What has no handle is attached nowhere.
    return limiter
  }
}
