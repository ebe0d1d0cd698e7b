import { fileURLToPath } from 'node:url'
import { summaryOf } from 'sluicegate-testkit/samples.js'
import type { ClockName } from './contenders/algorithms.js'
import { ALGORITHM_NAMES } from './contenders/algorithms.js'
import type { ContenderName } from './contenders.js'
import type { HotKeyJob } from './hot-key.js'
import type { Job } from './job.js'
import { type Effort, type Measurement, measure, type Subject, startNode, subject } from './measure.js'
import type { Filled } from './memory-subject.js'
import { type Answer, atMost, atMostTimes, compared, of, type Question } from './question.js'
import { buildGoRival, type GoLimiter, startGoRival } from './rivals.js'

const HOT_KEY_SUBJECT = fileURLToPath(new URL('./hot-key-subject.js', import.meta.url))
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
        ...(go ? hotGoSubjects(effort) : []),
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
  return { name, outcome: 'mostly allow', threads: job.workers, start: () => startNode(name, HOT_KEY_SUBJECT, { ...job, repeatMs }) }
}

function hotGoSubjects({ repeatMs }: Effort): Subject[] {
  const limiters: readonly [string, GoLimiter][] = [
    [GO, 'cas'],
    ['Go packed CAS, 2 goroutines, one clock reading for 1,024', 'cas-coarse'],
    ['Go x/time/rate, 2 goroutines', 'rate'],
  ]
  return limiters.map(([name, limiter]) => ({ name, outcome: 'allow', threads: 2, start: () => startGoRival(limiter, 2, repeatMs) }))
}

/** Sizes of the plot over keys. */
export const KEY_COUNTS = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] as const

/** Lines of the plot over keys. The coarse one runs in turns of 16 takes. */
export const SWEPT: readonly ContenderName[] = [
  'sluicegate, coarse',
  'sluicegate, precise',
  'plain Map',
  'express-rate-limit store',
  'rate-limiter-flexible',
]

/** There are many subjects, and no verdict hangs on them. */
const SWEEP_EFFORT = { rounds: 7, lives: 1 }

export const WORKER_COUNTS = [1, 2, 3, 4] as const

/** Nanoseconds a decision over the number of keys, for the plot. */
export const keysSweep: Question = {
  name: 'keys-sweep',
  async ask(given: Effort): Promise<Answer[]> {
    const effort = { ...given, ...SWEEP_EFFORT }
    const measurements: Measurement[] = []
    for (const keys of KEY_COUNTS) {
      const subjects = SWEPT.map((contender) =>
        subject(contender, effort, { name: sweepName(contender, keys), keys, takesPerTurn: contender === 'sluicegate, coarse' ? 16 : 0 }),
      )
      measurements.push(...(await measure(subjects, effort)))
    }
    const note = 'Keys in random order. Coarse: turns of 16 takes, net; the others in one loop.'
    return [{ title: 'Over the number of keys', note, unit: 'ns', measurements, verdicts: [] }]
  },
}

/** One hot key under 1 to 4 workers, lock-free and under a mutex, for the plot. */
export const workersSweep: Question = {
  name: 'workers-sweep',
  async ask(given: Effort): Promise<Answer[]> {
    const effort = { ...given, ...SWEEP_EFFORT }
    const subjects = WORKER_COUNTS.flatMap((workers) =>
      (['lock-free', 'mutex'] as const).map((store) =>
        hotKeySubject(workersName(store, workers), effort, {
          keys: 1,
          store,
          workers,
          boundKey: true,
          clock: 'coarse',
        }),
      ),
    )
    const measurements = await measure(subjects, effort)
    const note = 'Wall time over the decisions of all workers; bound key, coarse clock, bursts of 1,024.'
    return [{ title: 'One hot key, over the number of workers', note, unit: 'ns', measurements, verdicts: [] }]
  },
}

export function sweepName(contender: string, keys: number): string {
  return `${contender}; ${keys.toLocaleString('en')} ${keys === 1 ? 'key' : 'keys'}`
}

export function workersName(store: string, workers: number): string {
  return `${store}; ${workers} ${workers === 1 ? 'worker' : 'workers'}`
}

const MANY_KEYS = 100_000
const ALGORITHM_TAKES_PER_TURN = 16
const OUTCOMES = ['allow', 'deny'] as const
const CLOCKS = ['precise', 'coarse'] as const

/** What a decision of each algorithm costs on one key, allowed and denied, by bound key and by key, on both clocks. */
export const algorithms: Question = {
  name: 'algorithms',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const keying of ['bound', 'keyed'] as const) {
      for (const clock of CLOCKS) answers.push(await asked(effort, keying, clock, 1))
    }
    return answers
  },
}

/** The same over 100,000 keys in random order, by key. */
export const algorithmsManyKeys: Question = {
  name: 'algorithms-100k-keys',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const clock of CLOCKS) answers.push(await asked(effort, 'keyed', clock, MANY_KEYS))
    return answers
  },
}

async function asked(effort: Effort, keying: 'bound' | 'keyed', clock: ClockName, keys: number): Promise<Answer> {
  const takesPerTurn = clock === 'coarse' ? ALGORITHM_TAKES_PER_TURN : 0
  const subjects = ALGORITHM_NAMES.flatMap((algorithm): Subject[] =>
    OUTCOMES.map((outcome) =>
      subject(`${algorithm}; ${keying}; ${clock}`, effort, { name: `${algorithm}: ${outcome}`, outcome, keys, takesPerTurn }),
    ),
  )
  const measurements = await measure(subjects, effort)
  const where = keys === 1 ? (keying === 'bound' ? 'a bound key' : 'one key') : `${keys.toLocaleString('en')} keys in random order`
  return {
    title: `Each algorithm, ${where}, ${clock} clock`,
    note:
      clock === 'coarse'
        ? `Turns of ${ALGORITHM_TAKES_PER_TURN} takes, net of the same turns without takes; gross beside it.`
        : 'One loop.',
    unit: 'ns',
    measurements,
    verdicts: [],
    comparison: compared(
      'deny / allow',
      ALGORITHM_NAMES.map((name) => [of(measurements, `${name}: deny`), of(measurements, `${name}: allow`)]),
    ),
  }
}

const TAKES_PER_TURN = [1, 4, 16, 64]
const JUDGED = 'bound, coarse, 16 a turn'

/** What a key costs that was hashed once, beside those who know only one key. */
export const boundKey: Question = {
  name: 'bound-key',
  async ask(effort: Effort): Promise<Answer[]> {
    const measurements = await measure(
      [
        ...TAKES_PER_TURN.map((takesPerTurn) =>
          subject('sluicegate bound, coarse', effort, { name: `bound, coarse, ${takesPerTurn} a turn`, takesPerTurn }),
        ),
        subject('sluicegate bound gcra, coarse', effort, { name: 'bound, coarse, 16 a turn, gcra', takesPerTurn: 16 }),
        subject('sluicegate bound, coarse', effort, { name: 'bound, coarse, one loop' }),
        subject('sluicegate bound, precise', effort, { name: 'bound, precise, one loop' }),
        subject('limiter', effort),
        ...goSubjects(effort),
      ],
      effort,
    )
    return [
      {
        title: 'A bound key',
        note: 'In turns: net of the same turns without takes; gross beside it. The others run in one loop.',
        unit: 'ns',
        measurements,
        verdicts: [atMost('bound key, coarse clock, 16 takes a turn', of(measurements, JUDGED), 12)],
      },
    ]
  },
}

function goSubjects(effort: Effort): Subject[] {
  if (!buildGoRival()) return []
  const limiters: readonly [string, GoLimiter][] = [
    ['Go packed CAS', 'cas'],
    ['Go packed CAS, one clock reading for 1,024', 'cas-coarse'],
    ['Go x/time/rate', 'rate'],
  ]
  return limiters.map(([name, limiter]) => ({ name, outcome: 'allow', start: () => startGoRival(limiter, 1, effort.repeatMs) }))
}

const FILLING = { keys: 1_000_000, times: 7 }
const CONTENDERS: readonly ContenderName[] = ['sluicegate, precise', 'plain Map', 'rate-limiter-flexible', 'express-rate-limit store']

/** Bytes a key at a million keys, each repeat in a fresh process. */
export const memory: Question = {
  name: 'memory',
  async ask(): Promise<Answer[]> {
    const measurements: Measurement[] = []
    for (const contender of CONTENDERS) measurements.push(...(await bytesAKey(contender, FILLING)))
    const what = 'memory, 1,000,000 keys, bytes a key'
    return [
      {
        title: 'Memory at 1,000,000 keys, bytes a key',
        note: 'Growth of the resident set after a full collection; keys are made for the take and kept only by who keeps them.',
        unit: 'bytes',
        measurements,
        verdicts: [
          atMost(`${what}, resident`, of(measurements, 'sluicegate, precise: resident'), 24, 'bytes'),
          atMost(`${what}, stats().memoryBytes`, of(measurements, 'sluicegate, precise: by its own stats'), 24, 'bytes'),
        ],
      },
    ]
  },
}

interface Filling {
  readonly keys: number
  readonly takesPerKey?: number
  /** Each in a fresh process. */
  readonly times: number
}

/** A young generation of fixed size: its growth under the garbage of takes is the engine's, not the contender's. */
const FLAGS = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16']
const SUBJECT = fileURLToPath(new URL('./memory-subject.js', import.meta.url))

/** What a contender's keys cost: growth of the resident set, and what it says itself, if it does. */
export async function bytesAKey(
  contender: ContenderName,
  { keys, takesPerKey = 1, times }: Filling,
  name: string = contender,
): Promise<Measurement[]> {
  const job: Job = { contender, keys, takesPerTurn: 0, outcome: 'allow', freshKeys: false, repeatMs: 0, takesPerKey }
  const filled: Filled[] = []
  for (let nth = 0; nth < times; nth++) filled.push(await fill(job))
  const measured = (kind: string, bytes: readonly number[]): Measurement => {
    const samples = bytes.map((each) => each / keys)
    const summary = summaryOf(samples)
    const takes = keys * takesPerKey * times
    return { subject: `${name}: ${kind}`, ns: summary, grossNs: summary, samples, takes, allowed: takes, voided: 0 }
  }
  const own = filled.flatMap(({ ownBytes }) => ownBytes ?? [])
  const resident = filled.map(({ residentBytes }) => residentBytes)
  return [measured('resident', resident), ...(own.length > 0 ? [measured('by its own stats', own)] : [])]
}

async function fill(job: Job): Promise<Filled> {
  const process = await startNode(job.contender, SUBJECT, job, FLAGS)
  const filled = (await process.ask('run')) as Filled
  await process.stop()
  return filled
}
