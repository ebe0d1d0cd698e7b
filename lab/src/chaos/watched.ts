/** No wait takes longer, on a machine that has other things to do as well. */
const LONGEST_MS = 60_000

/** Waits for what a name says. */
export type Watchdog = <Value>(what: string, awaited: Promise<Value>) => Promise<Value>

/** Waits that end, each of them: with what was waited for, else with a failure that says what state everything was in. */
export function watchdog(state: () => Promise<string>, longestMs = LONGEST_MS): Watchdog {
  return async (what, awaited) => {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not so after ${longestMs} ms`)), longestMs)
    })
    try {
      return await Promise.race([awaited, late])
    } catch (error) {
      throw new Error(`${what}: ${error instanceof Error ? error.message : error}\n${await state()}`, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
}
