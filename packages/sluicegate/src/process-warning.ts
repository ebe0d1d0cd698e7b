/** A warning of the process; on the console where the runtime has none, or has what throws in its place, as Next.js has at the edge. */
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
