import { until } from 'sluicegate-testkit'
import type { Subject } from './recorded.js'
import { reportOf, served, servedMs, unserved } from './subject.js'
import { type Watchdog, watchdog } from './watched.js'

/** A fault that was made. */
export interface Made {
  /** From when the recovery is counted. */
  readonly fromMs: number
  /** From when on takes are asked for that show the recovery. */
  readonly sinceMs: number
  /** Brings back what is still missing, once all is decided again. */
  repair?(): Promise<void>
}

/** A fault that is made again and again under load, and who is looked at meanwhile. */
export interface FaultPlan {
  readonly name: string
  readonly times: number
  readonly subjects: readonly Subject[]
  readonly keys: readonly string[]
  /** What shows that a key is decided again; default any answer of the store. */
  readonly isServed?: Parameters<typeof served>[3]
  /** In what state everything is. */
  state(): Promise<string>
  make(round: number, watched: Watchdog): Promise<Made>
  /** Resolves when every caller had its last answer. */
  stop(): Promise<unknown>
  readonly progress?: ((line: string) => void) | undefined
}

/** Makes a fault so often while callers ask all the time. @returns what became of each subject, and how long. */
export async function underFaults({ name, times, subjects, keys, isServed, state, make, stop, progress }: FaultPlan) {
  const watched = watchdog(state)
  const beganMs = performance.now()
  const recoveries: ReadonlyMap<string, number>[] = []
  await watched('the store decides', until('about every key', served(subjects, keys, 0)))
  for (let round = 0; round < times; round++) {
    const { fromMs, sinceMs, repair } = await make(round, watched)
    const again = until('takes of every key are as before', served(subjects, keys, sinceMs, isServed))
    await watched(`after ${name}`, again).catch((error) => {
      throw new Error(`${error.message}\nstill not: ${unserved(subjects, keys, sinceMs, isServed).join('; ')}`, { cause: error })
    })
    const recovery = subjects.map((subject) => [subject.name, Math.round(servedMs(subject, keys, sinceMs, isServed) - fromMs)] as const)
    recoveries.push(new Map(recovery))
    await repair?.()
    progress?.(`${name}, ${round + 1} of ${times}: ${Math.max(...recovery.map(([, ms]) => ms))} ms`)
  }
  await watched('every caller has its last answer', stop())
  return {
    /** Milliseconds until every subject was as before, of each time. */
    recoveryMs: recoveries.map((recovery) => Math.max(...recovery.values())),
    seconds: (performance.now() - beganMs) / 1000,
    subjects: subjects.map((subject) =>
      reportOf(
        subject,
        recoveries.map((recovery) => recovery.get(subject.name) ?? Number.NaN),
      ),
    ),
  }
}
