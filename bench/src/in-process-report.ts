import { type Chart, chartSvg, type Line, measuredOn, pointOf } from './chart.js'
import type { Machine } from './machine.js'
import type { Effort, Measurement } from './measure.js'
import { type Answer, of } from './question.js'
import { KEY_COUNTS, SWEPT, sweepName, WORKER_COUNTS, workersName } from './questions.js'
import { claimsTable, machineTable, type Report } from './report.js'
import { figure, minuteOf, spread, type Table, withSpread } from './table.js'

/** What `npm run bench` found. */
export interface Results {
  readonly startedAt: string
  readonly machine: Machine
  /** The rivals' versions. */
  readonly rivals: Readonly<Record<string, string>>
  readonly effort: Effort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly answers: readonly (Answer & { readonly question: string })[]
}

/** Those in JavaScript that are asked in the process. */
const RIVALS = ['express-rate-limit', 'limiter', 'rate-limiter-flexible']

/** A run with --sweeps; questions that were asked again, or for the first time, come from the later runs. */
export function inProcessReport(first: Results, later: readonly Results[]): Report {
  const results = later.reduce(askedAgain, first)
  const { startedAt, machine, rivals, effort, answers } = results
  const rows = {
    Go: machine.go,
    rivals: RIVALS.map((name) => `${name} ${rivals[name]}`).join(', '),
    run: `${minuteOf(startedAt)}, ${effort.rounds} repeats of ${effort.repeatMs} ms in ${effort.lives} processes each`,
  }
  const ofQuestions = [...new Set(answers.map(({ question }) => question))].flatMap((question) => {
    const own = answers.filter((answer) => answer.question === question)
    return pairedTable(question, own) ?? own.map((answer) => answerTable(question, answer))
  })
  const targets = claimsTable(
    'targets',
    answers.flatMap(({ verdicts }) => verdicts),
  )
  return {
    pages: ['benchmarks.md'],
    tables: [machineTable('machine', results, rows), targets, ...ofQuestions],
    plots: { 'over-keys': () => chartSvg(overKeys(results)), 'over-workers': () => chartSvg(overWorkers(results)) },
  }
}

function askedAgain(earlier: Results, later: Results): Results {
  const again = (question: string): boolean => later.answers.some((answer) => answer.question === question)
  const answers = earlier.answers.flatMap((answer, index) => {
    if (!again(answer.question)) return [answer]
    const isFirst = earlier.answers.findIndex(({ question }) => question === answer.question) === index
    return isFirst ? later.answers.filter(({ question }) => question === answer.question) : []
  })
  const isNew = (question: string): boolean => !earlier.answers.some((answer) => answer.question === question)
  return { ...earlier, loadAfter: later.loadAfter, answers: [...answers, ...later.answers.filter(({ question }) => isNew(question))] }
}

export function answerTable(name: string, { title, note, unit, measurements, comparison }: Answer): Table {
  const inTurns = measurements.some(({ ns, grossNs }) => ns.median !== grossNs.median)
  const head = ['', `median, ${unit}`, 'quartiles', ...(inTurns ? ['gross'] : []), ...(comparison ? [comparison.head] : [])]
  const rows = measurements.map(({ subject, ns, grossNs }) => {
    const gross = ns.median === grossNs.median ? '' : figure(grossNs.median)
    const ratio = comparison?.ratios[subject]
    const compared = ratio === undefined ? '' : `${figure(ratio.median)} (${spread(ratio)})`
    return [subject, ...withSpread(ns), ...(inTurns ? [gross] : []), ...(comparison ? [compared] : [])]
  })
  return { name, title, note, head, rows }
}

/**
 * Answers whose subjects are all pairs, such as `gcra: allow` and `gcra: deny`, in one table: a row for each pair, a column for each answer, both
 * medians in a cell. Spreads stay in the results.
 */
function pairedTable(name: string, answers: readonly Answer[]): Table | undefined {
  const subjects = [...new Set(answers.flatMap(({ measurements }) => measurements.map(({ subject }) => subject)))]
  const pairs = subjects.map((subject) => /^(.*): ([^:]*)$/.exec(subject))
  const [rows, sides] = [1, 2].map((part) => [...new Set(pairs.map((pair) => pair?.[part]))]) as [string[], string[]]
  if (pairs.includes(null) || sides.length !== 2) return undefined
  const medians = ({ measurements }: Answer, row: string): string => {
    const found = sides.flatMap((side) => measurements.filter(({ subject }) => subject === `${row}: ${side}`))
    return found.map(({ ns }) => figure(ns.median)).join('/')
  }
  return {
    name,
    title: `Medians, ${answers[0]?.unit}: ${sides.join('/')}.`,
    head: ['', ...answers.map(({ title }) => title.replace(/^Each algorithm,? |\.$/g, ''))],
    rows: rows.map((row) => [row, ...answers.map((answer) => medians(answer, row))]),
  }
}

/** Nanoseconds a decision over the number of keys. */
function overKeys({ answers, machine, startedAt }: Results): Chart {
  const measurements = measurementsOf(answers, 'keys-sweep')
  const lines = SWEPT.map((name): Line => {
    const points = KEY_COUNTS.map((keys) => pointOf(keys.toLocaleString('en'), of(measurements, sweepName(name, keys)).ns))
    return { name, points }
  })
  const title = 'Nanoseconds a decision over the number of keys'
  const subtitle = `Keys in random order, one thread, median and quartiles. ${measuredOn(machine, startedAt)}`
  return { title, subtitle, xName: 'keys', yName: 'ns a decision', yScale: 'log', lines }
}

const KINDS = { 'lock-free': 'compare-and-swap (Sluicegate)', mutex: 'the same under a mutex (Atomics.wait)' }

/** Decisions a second over the number of worker threads. */
function overWorkers({ answers, machine, startedAt }: Results): Chart {
  const measurements = measurementsOf(answers, 'workers-sweep')
  const lines = Object.entries(KINDS).map(([store, name]): Line => {
    const points = WORKER_COUNTS.map((workers) => {
      const { y, low, high } = pointOf('', of(measurements, workersName(store, workers)).ns, (ns) => 1e3 / ns)
      return { x: String(workers), y, low: high, high: low }
    })
    return { name, points }
  })
  const title = 'Decisions a second on one hot key'
  const subtitle = `All workers together, bound key, coarse clock. ${measuredOn(machine, startedAt)}`
  return { title, subtitle, xName: 'worker threads', yName: 'million a second', yScale: 'value', lines }
}

function measurementsOf(answers: Results['answers'], question: string): readonly Measurement[] {
  const found = answers.find((answer) => answer.question === question)
  if (found === undefined) throw new Error(`no ${question} in these results: run the benchmarks with --sweeps`)
  return found.measurements
}
