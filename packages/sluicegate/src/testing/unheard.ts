import { setImmediate } from 'node:timers/promises'

/** Rejections that nobody heard of while `run` went on, each of which would have ended the process. */
export async function unheard(run: () => Promise<void>): Promise<unknown[]> {
  const reasons: unknown[] = []
  const hear = (reason: unknown): void => void reasons.push(reason)
  process.on('unhandledRejection', hear)
  try {
    await run()
    // They are told of once the turn has ended.
    await setImmediate()
  } finally {
    process.off('unhandledRejection', hear)
  }
  return reasons
}
