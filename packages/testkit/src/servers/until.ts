const ASK_MS = 10
const LONGEST_MS = 30_000

/** Asks again and again until the answer is yes, as one has to of servers; after 30 s that is a fault, also of an answer that does not come. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: not so after ${LONGEST_MS} ms`)), LONGEST_MS)
  })
  const endMs = performance.now() + LONGEST_MS
  const asked = async (): Promise<void> => {
    while (performance.now() < endMs) {
      if (await isSo()) return
      await new Promise((resolve) => setTimeout(resolve, ASK_MS))
    }
    await late
  }
  try {
    await Promise.race([asked(), late])
  } finally {
    clearTimeout(timer)
  }
}
