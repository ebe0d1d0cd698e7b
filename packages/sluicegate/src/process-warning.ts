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
