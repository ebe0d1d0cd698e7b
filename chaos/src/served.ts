import type { RecordedTake, Subject } from './subject.js'

type IsServed = (decision: RecordedTake['decision']) => boolean

/** An answer of the store. */
const byStore: IsServed = ({ source }) => source !== 'outage'

/** Whether every subject had an answer of the store about every key, of those asked for since then. */
export function served(subjects: readonly Subject[], keys: readonly string[], sinceMs: number, isServed = byStore): () => boolean {
  return () => unserved(subjects, keys, sinceMs, isServed).length === 0
}

export function unserved(subjects: readonly Subject[], keys: readonly string[], sinceMs: number, isServed = byStore): string[] {
  return subjects.flatMap((subject) => {
    const answered = firstAnswers(subject, sinceMs, isServed)
    return keys.filter((key) => !answered.has(key)).map((key) => `${subject.name}, ${key}`)
  })
}

/** When the last of the keys had its first answer of the store. */
export function servedMs(subject: Subject, keys: readonly string[], sinceMs: number, isServed = byStore): number {
  const answered = firstAnswers(subject, sinceMs, isServed)
  return Math.max(...keys.map((key) => answered.get(key) ?? Number.NaN))
}

function firstAnswers({ load }: Subject, sinceMs: number, isServed: IsServed): ReadonlyMap<string, number> {
  const first = new Map<string, number>()
  for (const { key, answeredMs, decision } of load.since(sinceMs))
    if (isServed(decision)) first.set(key, Math.min(answeredMs, first.get(key) ?? answeredMs))
  return first
}
