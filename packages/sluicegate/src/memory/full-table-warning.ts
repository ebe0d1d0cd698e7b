import { warnOnce } from '../warn-once.js'
import type { OpenCore } from './open-core.js'

const warn = /* @__PURE__ */ warnOnce<'SLUICEGATE_TABLE_FULL'>()

/** Warns once in a process, when a new key first finds no room. */
export function warnOfFullTable(policy: string, limiter: Pick<OpenCore, 'counters'>): void {
  warn(
    'SLUICEGATE_TABLE_FULL',
    () =>
      `limiter "${policy}" has no room for a new key: it tracks ${limiter.counters().keys} keys, and those near the new one are all being denied. ` +
      'New keys now share a small budget or are denied. Raise maxKeys or growTo, or choose a coarser key',
  )
}
