import { givenOptions, QUICK_RESULTS, RAW } from './committed-form.js'
import { ALGORITHM_NAMES, type AlgorithmName, LOG_LIMITS, type LogContenderName } from './contenders/algorithms.js'
import type { ContenderName } from './contenders.js'
import { answerTable, type Results } from './in-process-report.js'
import { load, machine } from './machine.js'
import { type Effort, type Measurement, measure, type Subject, subject } from './measure.js'
import { type Answer, atMost, atMostTimes, compared, of, type Question } from './question.js'
import {
  algorithms,
  algorithmsManyKeys,
  boundKey,
  bytesAKey,
  hotKey,
  hotKeySubject,
  keysSweep,
  memory,
  WORKER_COUNTS,
  workersName,
  workersSweep,
} from './questions.js'
import { claimsTable, writeResults } from './report.js'
import { installRivals, rivalVersions } from './rivals.js'
import { tableText } from './table.js'

const TAKES_PER_TURN = [1, 4, 16, 64]

/** A take by key, always the same one. */
const oneKey: Question = {
  name: 'one-key',
  async ask(effort: Effort): Promise<Answer[]> {
    const measurements = await measure(
      [
        ...TAKES_PER_TURN.map((takesPerTurn) =>
          subject('sluicegate, coarse', effort, { name: `coarse, ${takesPerTurn} a turn`, takesPerTurn }),
        ),
        subject('sluicegate, coarse', effort, { name: 'coarse, one loop' }),
        subject('sluicegate, precise', effort, { name: 'precise, one loop' }),
        subject('plain Map', effort),
        subject('rate-limiter-flexible', effort),
        subject('rate-limiter-flexible, no prefix', effort),
        subject('express-rate-limit store', effort),
      ],
      effort,
    )
    return [
      {
        title: 'A take by key, 1 key',
        note: 'In turns: net of the same turns without takes; gross beside it. The others run in one loop.',
        unit: 'ns',
        measurements,
        verdicts: [
          atMost('keyed take, 1 key, coarse clock, 16 takes a turn', of(measurements, 'coarse, 16 a turn'), 25),
          atMost('keyed take, 1 key, precise clock', of(measurements, 'precise, one loop'), 65),
        ],
      },
    ]
  },
}

/** 100,000 keys in random order, precise clock. */
const hundredThousandKeys: Question = {
  name: '100k-keys',
  async ask(effort: Effort): Promise<Answer[]> {
    const keys = 100_000
    const measurements = await measure(
      [
        subject('sluicegate, precise', effort, { keys }),
        subject('plain Map', effort, { keys }),
        subject('rate-limiter-flexible', effort, { keys }),
        subject('rate-limiter-flexible, no prefix', effort, { keys }),
        subject('express-rate-limit store', effort, { keys }),
      ],
      effort,
    )
    const ours = of(measurements, 'sluicegate, precise')
    const what = '100,000 keys, precise clock'
    return [
      {
        title: '100,000 keys in random order, precise clock',
        note: 'One loop.',
        unit: 'ns',
        measurements,
        verdicts: [
          atMostTimes(what, ours, of(measurements, 'rate-limiter-flexible'), '1/4'),
          atMostTimes(what, ours, of(measurements, 'express-rate-limit store'), '1'),
        ],
      },
    ]
  },
}

/** 1,000,000 keys in random order, coarse clock, 16 takes a turn; once with keys made before, once with keys without a cached hash. */
const millionKeys: Question = {
  name: '1m-keys',
  async ask(effort: Effort): Promise<Answer[]> {
    const made = await inTurns(effort, false)
    const fresh = await inTurns(effort, true)
    const what = '1,000,000 keys, coarse clock, 16 takes a turn'
    const ours = of(made, 'sluicegate, coarse')
    const verdicts = [
      atMostTimes(what, ours, of(made, 'rate-limiter-flexible'), '1/3'),
      atMostTimes(what, ours, of(made, 'plain Map'), '1/3'),
    ]
    const note = 'All in turns of 16 takes, net of the same turns without takes.'
    return [
      { title: '1,000,000 keys in random order, coarse clock', note, unit: 'ns', measurements: made, verdicts },
      {
        title: '1,000,000 keys in random order, coarse clock, fresh strings',
        note: `${note} Each key is a new string, as off a socket: a Map has to hash it too. Making it is not counted.`,
        unit: 'ns',
        measurements: fresh,
        verdicts: [],
      },
    ]
  },
}

function inTurns(effort: Effort, freshKeys: boolean) {
  const job = { keys: 1_000_000, takesPerTurn: 16, freshKeys }
  return measure(
    [
      subject('sluicegate, coarse', effort, job),
      subject('plain Map', effort, job),
      subject('plain Map, coarse', effort, job),
      subject('rate-limiter-flexible', effort, job),
      subject('rate-limiter-flexible, no prefix', effort, job),
      subject('express-rate-limit store', effort, job),
    ],
    effort,
  )
}

const CONTENDERS: readonly ContenderName[] = [
  'sluicegate, precise',
  'sluicegate bound, precise',
  'plain Map',
  'rate-limiter-flexible',
  'express-rate-limit store',
  'limiter',
]

/** What a denial costs beside an allow: under attack nearly all are denials. */
const denial: Question = {
  name: 'denial',
  async ask(effort: Effort): Promise<Answer[]> {
    const coarse: Subject[] = (['allow', 'deny'] as const).map((outcome) =>
      subject('sluicegate, coarse', effort, { name: `sluicegate, coarse, 16 a turn, ${outcome}`, outcome, takesPerTurn: 16 }),
    )
    const others = CONTENDERS.flatMap((contender) =>
      (['allow', 'deny'] as const).map((outcome) => subject(contender, effort, { name: `${contender}, ${outcome}`, outcome })),
    )
    const measurements = await measure([...coarse, ...others], effort)
    const verdicts = ['sluicegate, precise', 'sluicegate, coarse, 16 a turn'].map((who) =>
      atMostTimes('a denial', of(measurements, `${who}, deny`), of(measurements, `${who}, allow`), '1'),
    )
    return [{ title: 'A denial beside an allow, 1 key', note: 'One loop, but where turns are named.', unit: 'ns', measurements, verdicts }]
  },
}

const SPREAD_KEYS = 10_000

/** The token bucket by compare-and-swap and under a mutex, 1 to 4 workers on one hot key and on many. */
const algorithmsWorkers: Question = {
  name: 'algorithms-workers',
  async ask(effort: Effort): Promise<Answer[]> {
    const answers: Answer[] = []
    for (const keys of [1, SPREAD_KEYS]) answers.push(await asked(effort, keys))
    return answers
  },
}

async function asked(effort: Effort, keys: number): Promise<Answer> {
  const subjects = WORKER_COUNTS.flatMap((workers) =>
    (['lock-free', 'mutex'] as const).map((store) =>
      hotKeySubject(workersName(store, workers), effort, { keys, store, workers, boundKey: true, clock: 'coarse' }),
    ),
  )
  const measurements = (await measure(subjects, effort)).map(withDenied)
  const pairs = WORKER_COUNTS.map((_, nth) => measurements.slice(2 * nth, 2 * nth + 2) as [Measurement, Measurement])
  return {
    title: `Token bucket, ${keys === 1 ? 'one hot key' : `${keys.toLocaleString('en')} keys in random order`}, over the number of workers`,
    note: 'Wall time over the decisions of all workers; bound keys, coarse clock, bursts of 1,024.',
    unit: 'ns',
    measurements,
    verdicts: [],
    comparison: compared('lock-free / mutex', pairs),
  }
}

/** Named with the share of denials, where there were any worth telling. */
function withDenied(measurement: Measurement): Measurement {
  const { subject, takes, allowed } = measurement
  const denied = ((takes - allowed) / takes) * 100
  return denied < 0.1 ? measurement : { ...measurement, subject: `${subject}, ${denied.toFixed(1)} % denied` }
}

const KEYS = 100_000
const TIMES = 3

/** Bytes a key of each algorithm, and of logs with one request in them and with as many as they hold. */
const algorithmsMemory: Question = {
  name: 'algorithms-memory',
  async ask(): Promise<Answer[]> {
    const measurements: Measurement[] = []
    const filling = { keys: KEYS, times: TIMES }
    for (const name of ALGORITHM_NAMES.filter(hasFixedSize)) {
      measurements.push(...(await bytesAKey(`${name}; keyed; precise`, filling, name)))
    }
    for (const limit of LOG_LIMITS) {
      const name: LogContenderName = `sliding log of ${limit}`
      measurements.push(...(await bytesAKey(name, filling, `${name}, one request a key`)))
      measurements.push(...(await bytesAKey(name, { ...filling, takesPerKey: limit }, `${name}, full`)))
    }
    const note =
      'Resident: growth of the resident set in a fresh process, after a full collection. By its own stats: memoryBytes. Concurrency: 100 permits.'
    return [{ title: 'Each algorithm at 100,000 keys, bytes a key', note, unit: 'bytes', measurements, verdicts: [] }]
  },
}

/** What a log takes depends on its limit: those are measured apart. */
function hasFixedSize(name: AlgorithmName): boolean {
  return !name.startsWith('sliding log')
}

const JUDGED: readonly Question[] = [boundKey, oneKey, hundredThousandKeys, millionKeys, denial, memory, hotKey]
const SWEEPS: readonly Question[] = [keysSweep, workersSweep]
const PER_ALGORITHM: readonly Question[] = [algorithms, algorithmsManyKeys, algorithmsMemory, algorithmsWorkers]
const ALL = [...JUDGED, ...SWEEPS, ...PER_ALGORITHM]
const FULL: Effort = { rounds: 12, lives: 3, repeatMs: 120, patienceMs: 0 }
const PATIENCE_MS = 40_000
const QUICK: Effort = { rounds: 7, lives: 1, repeatMs: 40, patienceMs: 0 }

const USAGE = `npm run bench -- [--only NAME]... [--quick] [--sweeps] [--algorithms] [--patient] [--json FILE]

  --only NAME   one question, may be given again: ${ALL.map(({ name }) => name).join(', ')}
  --quick       ${QUICK.rounds} short rounds instead of ${FULL.rounds} long ones: a first look, no figures to quote
  --sweeps      also what the plots are drawn from: ${SWEEPS.map(({ name }) => name).join(', ')}
  --algorithms  instead, those about each algorithm: ${PER_ALGORITHM.map(({ name }) => name).join(', ')}
  --patient     wait for quiet before each repeat, and throw away those that others disturbed
  --json FILE   where all samples go, with the machine and the verdicts; default bench/results/local/in-process.json of whole runs with
                --sweeps, algorithms.json of those with --algorithms, bench/results/local/quick/in-process.json of others`

const values = givenOptions(USAGE, {
  only: { type: 'string', multiple: true, default: [] },
  quick: { type: 'boolean', default: false },
  sweeps: { type: 'boolean', default: false },
  algorithms: { type: 'boolean', default: false },
  patient: { type: 'boolean', default: false },
  json: { type: 'string' },
})

await run(chosen())

function resultsFile(): string {
  const isWhole = values.only.length === 0 && !values.quick && (values.sweeps || values.algorithms)
  return isWhole ? `${RAW}${values.algorithms ? 'algorithms' : 'in-process'}.json` : `${QUICK_RESULTS}in-process.json`
}

function refuse(what: string): never {
  console.error(`${what}\n\n${USAGE}`)
  process.exit(2)
}

function chosen(): readonly Question[] {
  const unknown = values.only.filter((name) => !ALL.some((question) => question.name === name))
  if (unknown.length > 0) refuse(`no question ${unknown.join(', ')}`)
  if (values.only.length > 0) return ALL.filter(({ name }) => values.only.includes(name))
  if (values.algorithms) return PER_ALGORITHM
  return values.sweeps ? [...JUDGED, ...SWEEPS] : JUDGED
}

async function run(questions: readonly Question[]): Promise<void> {
  installRivals()
  const effort: Effort = { ...(values.quick ? QUICK : FULL), patienceMs: values.patient ? PATIENCE_MS : 0 }
  const about = { startedAt: new Date().toISOString(), machine: machine(), rivals: rivalVersions(), effort }
  const loadBefore = load()
  console.log(`${about.machine.cpu}, ${about.machine.cores} cores, ${about.machine.os}, Node ${about.machine.node}, load ${loadBefore}\n`)
  const answers: Results['answers'][number][] = []
  for (const question of questions) {
    for (const answer of await question.ask(effort)) {
      answers.push({ question: question.name, ...answer })
      console.log(tableText(answerTable(question.name, answer)))
    }
  }
  const results: Results = { ...about, loadBefore, loadAfter: load(), answers }
  console.log(
    tableText(
      claimsTable(
        'targets',
        answers.flatMap(({ verdicts }) => verdicts),
      ),
    ),
  )
  writeResults(values.json ?? resultsFile(), results)
}
