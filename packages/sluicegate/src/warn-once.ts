import { onceInProcess } from './once-in-process.js'

/** Codes of warnings about how limits are used. Explained in `docs/warnings.md`. */
export type UsageWarning =
  | 'SLUICEGATE_ADDRESS_MISSING'
  | 'SLUICEGATE_CALL_REFUSED'
  | 'SLUICEGATE_COUNTED_TWICE'
  | 'SLUICEGATE_GATE_WIDTH'
  | 'SLUICEGATE_IPV6_WHOLE'
  | 'SLUICEGATE_KEY_MISSING'
  | 'SLUICEGATE_LIMITER_PER_REQUEST'
  | 'SLUICEGATE_PROXY_ANYBODY'
  | 'SLUICEGATE_PROXY_MISSING'
  | 'SLUICEGATE_PROXY_UNTRUSTED'
  | 'SLUICEGATE_SHARED_NAME'
  | 'SLUICEGATE_SHORT_WINDOW'

/** Codes of warnings about a server, a store or what it keeps. Explained in `docs/warnings.md`. */
export type StoreWarning =
  | 'SLUICEGATE_EVICTION'
  | 'SLUICEGATE_NO_ERROR_LISTENER'
  | 'SLUICEGATE_OLD_SERVER'
  | 'SLUICEGATE_OLD_TABLE'
  | 'SLUICEGATE_OPEN_TRANSACTION'
  | 'SLUICEGATE_OVERRIDE'
  | 'SLUICEGATE_REPLICA'
  | 'SLUICEGATE_SILENT_STORE'
  | 'SLUICEGATE_SLOW_STORE'
  | 'SLUICEGATE_STORE_REFUSES'

/** Warns of a fault. @param subject what it is about, such as a policy, where one code may concern several. */
export type Warn<Code extends string = UsageWarning> = (code: Code, message: string, subject?: string) => void

/** The same with a message that is made only if it is needed. */
type LazyWarn<Code extends string = UsageWarning> = (code: Code, message: string | (() => string), subject?: string) => void

/** Subjects of one code that are remembered and warned of: clients may choose them. */
const MAX_SUBJECTS = 10

/** A fault of a store that lasts is said again after this long, by as many subjects as there are causes. */
const AGAIN_MS = 60_000
const MAX_CAUSES = 100
/** Causes of causes that are looked at. */
const DEEPEST = 4

/** The subjects warned of in this process by code, with the times, in all entries and copies of the library. */
const WARNED = Symbol.for('sluicegate: warnings emitted')
type Warned = Map<string, Map<string, number>>

/**
 * Warns once for each code and subject.
 *
 * @param emit where warnings go instead; the returned function then remembers for itself. Default: warnings of the process, once in the process.
 */
export function warnOnce<Code extends string = UsageWarning>(emit?: Warn<Code>): LazyWarn<Code> {
  const warned: Warned = emit === undefined ? warnedInProcess() : new Map()
  const warn = emit ?? emitWarning
  return (code, message, subject = '') => {
    if (!isFirst(warned, code, subject, MAX_SUBJECTS)) return
    const text = typeof message === 'string' ? message : message()
    warn(code, `${text}; see node_modules/sluicegate/docs/warnings.md#${code.toLowerCase()}`)
  }
}

/** Warns of a store once in the process. */
export function warnOfStore(code: StoreWarning, message: string): void {
  if (isFirstWarning(code, '')) emitWarning(code, message)
}

/** Errors that a warning explains. */
const explained = /* @__PURE__ */ onceInProcess('errors explained', () => new WeakSet<object>())

/** Whether a warning says what to do about an error, or its cause: no other is due. */
export function isExplained({ cause }: Error, depth = 0): boolean {
  return cause instanceof Error && depth < DEEPEST && (explained.has(cause) || isExplained(cause, depth + 1))
}

/** Warns of what an error says that keeps a store from deciding: for each subject at most once a minute in the process. */
export function warnOfRefusal(code: StoreWarning, message: string, subject: string, error: unknown): void {
  if (error instanceof Error) explained.add(error)
  warnOfOutage(code, message, subject)
}

/** Warns of what keeps a store from its work, by default from deciding: for each subject at most once a minute in the process. */
export function warnOfOutage(code: StoreWarning, message: string, subject: string, meanwhile = 'the option outage decides'): void {
  if (isFirst(warnedInProcess(), code, subject, MAX_CAUSES, AGAIN_MS)) emitWarning(code, `${message}; until then ${meanwhile}`)
}

/** Emits a warning, however often it was emitted before. */
export function emitWarning(code: string, message: string): void {
  warnProcess(message, { type: 'SluicegateWarning', code })
}

/** True once in the process for each code and subject. @param most subjects of one code that are remembered; others are none. */
export function isFirstWarning(code: string, subject: string, most: number = MAX_SUBJECTS): boolean {
  return isFirst(warnedInProcess(), code, subject, most)
}

function isFirst(warned: Warned, code: string, subject: string, most: number, againMs?: number): boolean {
  const subjects = warned.get(code) ?? new Map<string, number>()
  const saidMs = subjects.get(subject)
  if (saidMs === undefined ? subjects.size >= most : againMs === undefined || performance.now() - saidMs < againMs) return false
  warned.set(code, subjects.set(subject, performance.now()))
  return true
}

function warnedInProcess(): Warned {
  const place = globalThis as { [WARNED]?: Warned }
  place[WARNED] ??= new Map()
  return place[WARNED]
}

/**
 * Emits a warning of the process; on the console where the runtime has no `process.emitWarning`, or one that throws, as in the edge runtime
 * of Next.js.
 */
export function warnProcess(warning: string | Error, about: { readonly type?: string; readonly code?: string } = {}): void {
  const { process } = globalThis
  try {
    if (typeof process?.emitWarning === 'function') {
      process.emitWarning(warning, about)
      return
    }
  } catch {
    // As above.
  }
  console.warn(about.code === undefined ? warning : `${about.code}: ${warning}`)
}
