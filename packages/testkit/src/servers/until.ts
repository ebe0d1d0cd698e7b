/** Soon at first; then once in a tenth of the time that it has taken so far: an answer may cost a request to a busy service. */
const [SHORTEST_PAUSE_MS, LONGEST_PAUSE_MS] = [10, 100]
const LONGEST_MS = 30_000

/** Asks again and again until the answer is yes, as one has to of servers; after 30 s that is a fault, also of an answer that does not come. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not so after ${LONGEST_MS} ms`)), LONGEST_MS)
  })
  const beginMs = performance.now()
  const asked = async (): Promise<void> => {
    for (let waitedMs = 0; waitedMs < LONGEST_MS; waitedMs = performance.now() - beginMs) {
      if (await isSo()) return
      const pauseMs = Math.min(LONGEST_PAUSE_MS, Math.max(SHORTEST_PAUSE_MS, waitedMs / 10))
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    await late
  }
  try {
    await Promise.race([asked(), late])
  } finally {
    clearTimeout(timer)
  }
}
