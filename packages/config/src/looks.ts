/** A folder over a network that takes longer does not answer. */
const LONGEST_MS = 10_000

/** When looks began that have no answer. */
const underWay = new Set<{ readonly beganMs: number }>()

/** Whether the file system has not answered a look for a second: then this process cannot end by itself, as it waits for its threads. */
export function isFileSystemSilent(): boolean {
  return [...underWay].some(({ beganMs }) => performance.now() - beganMs > 1_000)
}

/**
 * Looks at files, one at a time: a look that has no answer keeps one of the few threads in which this process reads files, looks up names and
 * compresses, and another look would take the next.
 */
export class Looks {
  #last: Promise<string> | undefined

  /** What the look found, or its error as text. While one has no answer, others wait for that one. */
  async look(begin: () => Promise<string>): Promise<string> {
    this.#last ??= this.#begun(begin)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<string>((resolve) => {
      timer = setTimeout(() => resolve(`no answer within ${LONGEST_MS / 1000} s`), LONGEST_MS).unref()
    })
    try {
      return await Promise.race([this.#last, late])
    } finally {
      clearTimeout(timer)
    }
  }

  async #begun(begin: () => Promise<string>): Promise<string> {
    const one = { beganMs: performance.now() }
    underWay.add(one)
    try {
      return await begin()
    } catch (error) {
      return String(error)
    } finally {
      underWay.delete(one)
      this.#last = undefined
    }
  }
}
