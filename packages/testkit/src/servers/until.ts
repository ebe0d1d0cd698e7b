const ASK_MS = 10
const LONGEST_MS = 30_000

/** Asks again and again until the answer is yes, as one has to of servers; after 30 s that is a fault. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + LONGEST_MS
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`${what}: not so after ${LONGEST_MS} ms`)
    await new Promise((resolve) => setTimeout(resolve, ASK_MS))
  }
}
