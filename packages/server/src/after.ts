/** Resolves after `ms`, and keeps no process alive for it. */
export function after(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}
