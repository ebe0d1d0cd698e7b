import { onceInProcess } from '../once-in-process.js'
import { warnProcess } from '../process-warning.js'
import type { OpenCore } from './open-core.js'

const CODE = 'SLUICEGATE_TABLE_FULL'

const warned = /* @__PURE__ */ onceInProcess('warned of a full table', () => ({ isTold: false }))

/** Warns once in a process, when a new key first finds no room. */
export function warnOfFullTable(policy: string, limiter: Pick<OpenCore, 'counters'>): void {
  if (warned.isTold) return
  warned.isTold = true
  const message =
    `limiter "${policy}" has no room for a new key: it tracks ${limiter.counters().keys} keys, and those near the new one are all being denied. ` +
    'New keys now share a small budget or are denied. Raise maxKeys or growTo, or choose a coarser key; see node_modules/sluicegate/docs/warnings.md#sluicegate_table_full'
  warnProcess(message, { type: 'SluicegateWarning', code: CODE })
}
