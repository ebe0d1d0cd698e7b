const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** Calls `fn` once, `ms` from now or sooner where timers reach no further, unless the returned function is called; it keeps no process alive. */
export function backgroundTimer(ms: number, fn: () => void): () => void {
  const timer: ReturnType<typeof setTimeout> = setTimeout(fn, Math.min(ms, MAX_TIMEOUT_MS))
  if (typeof timer === 'object') timer.unref()
  return () => clearTimeout(timer)
}
