import { warnProcess } from '../process-warning.js'

/** Faults in how limits are put to use: each is told once in a process. Explained in `docs/warnings.md`. */
export type EdgeWarning =
  | 'SLUICEGATE_COUNTED_TWICE'
  | 'SLUICEGATE_IPV6_WHOLE'
  | 'SLUICEGATE_LIMITER_PER_REQUEST'
  | 'SLUICEGATE_PROXY_ANYBODY'
  | 'SLUICEGATE_PROXY_MISSING'
  | 'SLUICEGATE_PROXY_UNTRUSTED'

/** Tells of a fault. */
export type Warn = (code: EdgeWarning, message: string) => void

/** Tells of each fault once, by `emit`. */
export function warnOnce(emit: Warn = emitWarning): Warn {
  const told = new Set<EdgeWarning>()
  return (code, message) => {
    if (told.has(code)) return
    told.add(code)
    emit(code, `${message}; see node_modules/sluicegate/docs/warnings.md#${code.toLowerCase()}`)
  }
}

function emitWarning(code: EdgeWarning, message: string): void {
  warnProcess(message, { type: 'SluicegateWarning', code })
}
