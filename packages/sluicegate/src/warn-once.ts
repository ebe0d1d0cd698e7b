import { warnProcess } from './process-warning.js'

/** Faults in how limits are put to use. Explained in `docs/warnings.md`. */
export type EdgeWarning =
  | 'SLUICEGATE_ADDRESS_MISSING'
  | 'SLUICEGATE_COUNTED_TWICE'
  | 'SLUICEGATE_IPV6_WHOLE'
  | 'SLUICEGATE_LIMITER_PER_REQUEST'
  | 'SLUICEGATE_PROXY_ANYBODY'
  | 'SLUICEGATE_PROXY_MISSING'
  | 'SLUICEGATE_PROXY_UNTRUSTED'
  | 'SLUICEGATE_SHARED_NAME'

/** Tells of a fault. @param subject what it is about, such as a policy, where there may be several. */
export type Warn = (code: EdgeWarning, message: string, subject?: string) => void

/** Subjects of one code that are told of: what clients choose may be among them. */
const MOST_SUBJECTS = 10

/** What was told in this process, by whichever entry or copy of the library: subjects by their code. */
const TOLD = Symbol.for('sluicegate: warnings that were told')

/** Tells of each fault once for each subject, by `emit`; by default once in the process, whoever looks. */
export function warnOnce(emit?: Warn): Warn {
  const told = emit === undefined ? toldInProcess() : new Map<string, Set<string>>()
  const tell = emit ?? emitWarning
  return (code, message, subject = '') => {
    const subjects = told.get(code) ?? new Set()
    if (subjects.has(subject) || subjects.size >= MOST_SUBJECTS) return
    told.set(code, subjects.add(subject))
    tell(code, `${message}; see node_modules/sluicegate/docs/warnings.md#${code.toLowerCase()}`)
  }
}

function toldInProcess(): Map<string, Set<string>> {
  const place = globalThis as { [TOLD]?: Map<string, Set<string>> }
  place[TOLD] ??= new Map()
  return place[TOLD]
}

function emitWarning(code: EdgeWarning, message: string): void {
  warnProcess(message, { type: 'SluicegateWarning', code })
}
