import { type EvictionEvent, evictions, type TableFullEvent, tablesFull } from '../diagnostics.js'
import { warnOnce } from '../warn-once.js'

const warn = /* @__PURE__ */ warnOnce<'SLUICEGATE_TABLE_FULL'>()

/**
 * Events of the table: evictions and new keys without room. A subscriber may call the core again, so events are held back until the
 * result of the current call has been read.
 */
export class TableEvents {
  private pending: (() => void)[] = []

  /** Making room for `key` has evicted a key with a debt of `tokens`. */
  evicted(policy: string, key: string, tokens: () => number): void {
    if (!evictions.hasSubscribers) return
    const event: EvictionEvent = { policy, key, tokens: tokens() }
    this.pending.push(() => evictions.publish(event))
  }

  /** The table has no room for `key`. Warns once in a process. @param keys how many keys the table tracks. */
  full(policy: string, key: string, allowed: boolean, keys: () => number): void {
    warn(
      'SLUICEGATE_TABLE_FULL',
      () =>
        `limiter "${policy}" has no room for a new key: it tracks ${keys()} keys, and those near the new one are all being denied. ` +
        'New keys now share a small budget or are denied. Raise maxKeys or growTo, or choose a coarser key',
    )
    if (!tablesFull.hasSubscribers) return
    const event: TableFullEvent = { policy, key, allowed }
    this.pending.push(() => tablesFull.publish(event))
  }

  /** Publishes the events of the current call. Call it last. */
  publish(): void {
    const { pending } = this
    if (pending.length === 0) return
    this.pending = []
    for (const publish of pending) publish()
  }
}
