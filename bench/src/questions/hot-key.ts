import { fileURLToPath } from 'node:url'
import type { HotKeyJob } from '../hot-key.js'
import { type Effort, measure, type Subject, startNode } from '../measure.js'
import { type Answer, atMostTimes, of, type Question } from '../question.js'
import { buildGoRival, type GoLimiter, startGoRival } from '../rivals.js'

const SUBJECT = fileURLToPath(new URL('../hot-key-subject.js', import.meta.url))
const OURS = 'lock-free, bound, coarse'
const MUTEX = 'mutex twin, bound, coarse'
const GO = 'Go packed CAS, 2 goroutines'

/** Two workers on one hot key. */
export const hotKey: Question = {
  name: 'hot-key',
  async ask(effort: Effort): Promise<Answer[]> {
    const both = { keys: 1, workers: 2, boundKey: true, clock: 'coarse' } as const
    const go = buildGoRival()
    const measurements = await measure(
      [
        hotKeySubject(OURS, effort, { ...both, store: 'lock-free' }),
        hotKeySubject(MUTEX, effort, { ...both, store: 'mutex' }),
        ...(go ? goSubjects(effort) : []),
        hotKeySubject('lock-free, by key, coarse', effort, { ...both, store: 'lock-free', boundKey: false }),
        hotKeySubject('mutex twin, by key, coarse', effort, { ...both, store: 'mutex', boundKey: false }),
        hotKeySubject('lock-free, bound, precise', effort, { ...both, store: 'lock-free', clock: 'precise' }),
        hotKeySubject('mutex twin, bound, precise', effort, { ...both, store: 'mutex', clock: 'precise' }),
      ],
      effort,
    )
    const what = '2 workers, one hot key, wall time a decision'
    const verdicts = [atMostTimes(what, of(measurements, OURS), of(measurements, MUTEX), '1/2')]
    if (go) verdicts.push(atMostTimes(what, of(measurements, OURS), of(measurements, GO), '1/2'))
    const note = 'Wall time over the decisions of both; bursts of 1,024, a turn of the event loop after each.'
    return [{ title: 'Two workers on one hot key', note, unit: 'ns', measurements, verdicts }]
  },
}

/** Workers on one key or many, lock-free or under a mutex. */
export function hotKeySubject(name: string, { repeatMs }: Effort, job: Omit<HotKeyJob, 'repeatMs'>): Subject {
  return { name, outcome: 'mostly allow', threads: job.workers, start: () => startNode(name, SUBJECT, { ...job, repeatMs }) }
}

function goSubjects({ repeatMs }: Effort): Subject[] {
  const limiters: readonly [string, GoLimiter][] = [
    [GO, 'cas'],
    ['Go packed CAS, 2 goroutines, one clock reading for 1,024', 'cas-coarse'],
    ['Go x/time/rate, 2 goroutines', 'rate'],
  ]
  return limiters.map(([name, limiter]) => ({ name, outcome: 'allow', threads: 2, start: () => startGoRival(limiter, 2, repeatMs) }))
}
