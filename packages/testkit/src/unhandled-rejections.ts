import { before } from 'node:test'
import { setImmediate } from 'node:timers/promises'

/** Unhandled rejections during `run`, each of which would have ended the process. */
export async function unhandledRejections(run: () => Promise<void>): Promise<unknown[]> {
  const reasons: unknown[] = []
  const hear = (reason: unknown): void => void reasons.push(reason)
  process.on('unhandledRejection', hear)
  try {
    await run()
    // They are reported after the turn has ended.
    await setImmediate()
  } finally {
    process.off('unhandledRejection', hear)
  }
  return reasons
}

/** Lets the tests of a file see warnings that a process gives once, whatever ran before in this process. */
export function freshWarnings(): void {
  before(() => {
    const place = globalThis as { readonly [given: symbol]: Map<string, unknown> | undefined }
    place[Symbol.for('sluicegate: warnings emitted')]?.clear()
  })
}
