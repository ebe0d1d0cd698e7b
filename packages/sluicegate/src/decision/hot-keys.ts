import { checkedTop } from '../arguments.js'
import type { Key } from '../key.js'
import { checkInteger } from '../options/option-checks.js'
import { type Counted, CountHeap } from './count-heap.js'

const MOST_HOT_KEYS = 10_000

/**
 * The option `hotKeys`: how many keys each list follows.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function checkedHotKeys(hotKeys = 0): number {
  checkInteger('hotKeys', hotKeys, 0, MOST_HOT_KEYS)
  return hotKeys
}

/** A key of the top list: its true count lies between `count - overcount` and `count`. */
export interface HotKey {
  readonly key: string
  readonly count: number
  readonly overcount: number
}

/** The keys asked about most and those denied most, highest first. */
export interface HotKeys {
  readonly demand: readonly HotKey[]
  readonly denials: readonly HotKey[]
}

/** Several top lists as one, the highest first. A key comes twice when its policy changed meanwhile. */
export function merged(lists: readonly HotKey[]): HotKey[] {
  const counts = new Map<string, HotKey>()
  for (const { key, count, overcount } of lists) {
    const other = counts.get(key)
    counts.set(key, { key, count: count + (other?.count ?? 0), overcount: overcount + (other?.overcount ?? 0) })
  }
  return [...counts.values()].sort((a, b) => b.count - a.count)
}

interface Counter extends Counted {
  key: string
  overcount: number
}

/**
 * The keys that come most often, in fixed memory: a space-saving summary. Every key whose share of all counts is above
 * `1 / size` is in it.
 *
 * Source: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k elements in data streams", 2005.
 *
 * @example
 * const hot = new SpaceSaving(100); hot.add('crawler'); hot.top(10) // [{ key: 'crawler', count: 1, overcount: 0 }]
 */
export class SpaceSaving {
  private readonly size: number
  private readonly counters = new Map<string, Counter>()
  private readonly heap = new CountHeap<Counter>()

  constructor(size: number) {
    this.size = size
  }

  /** Counts one more of `key`. */
  add(key: string): void {
    const known = this.counters.get(key)
    if (known !== undefined) {
      known.count++
      this.heap.sink(known)
      return
    }
    if (this.heap.size < this.size) {
      const counter = { key, count: 1, overcount: 0, at: 0 }
      this.heap.push(counter)
      this.counters.set(key, counter)
      return
    }
    const { least } = this.heap
    if (least === undefined) return
    this.counters.delete(least.key)
    least.key = key
    least.overcount = least.count
    least.count++
    this.counters.set(key, least)
    this.heap.sink(least)
  }

  /** The `n` highest counts, highest first. */
  top(n: number): HotKey[] {
    return this.heap.top(n).map(({ key, count, overcount }) => ({ key, count, overcount }))
  }
}

/** The keys asked about most and denied most: two summaries of a given size, or none of size 0. */
export class TopLists {
  private readonly demand: SpaceSaving | undefined
  private readonly denials: SpaceSaving | undefined

  constructor(size: number) {
    if (size === 0) return
    this.demand = new SpaceSaving(size)
    this.denials = new SpaceSaving(size)
  }

  /** Counts a request; several keys as one, in the form of JSON. */
  count(key: Key, allowed: boolean): void {
    if (this.demand === undefined) return
    const name = typeof key === 'string' ? key : JSON.stringify(key)
    this.demand.add(name)
    if (!allowed) this.denials?.add(name)
  }

  /** @throws {PolicyError} `OPTION_INVALID` */
  top(n = 10): HotKeys {
    const most = checkedTop(n)
    return { demand: this.demand?.top(most) ?? [], denials: this.denials?.top(most) ?? [] }
  }
}
