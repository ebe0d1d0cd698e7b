import { checkedTop } from './arguments.js'
import { type HotKeys, SpaceSaving } from './hot-keys.js'
import type { Key } from './limiter.js'

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
