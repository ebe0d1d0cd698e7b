import { fileURLToPath } from 'node:url'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { oneEachLine } from 'sluicegate-testkit/markdown-tables.js'
import { type Summary, summaryOf } from 'sluicegate-testkit/samples.js'

/** The folder of the results that are committed, and within it that of the raw ones, which are not. `npm run plots` makes those of these. */
export const RESULTS = fileURLToPath(new URL('../results/', import.meta.url))
export const RAW = `${RESULTS}local/`
/** What is no figure to quote. */
export const QUICK_RESULTS = `${RAW}quick/`

/** The options of the command line. `--help` prints the usage and ends the program. */
export function givenOptions<const Options extends NonNullable<ParseArgsConfig['options']>>(
  usage: string,
  options: Options,
): ReturnType<typeof parseArgs<{ options: Options }>>['values'] {
  if (process.argv.includes('--help')) {
    console.log(usage)
    process.exit()
  }
  return parseArgs({ options }).values
}

/** Servers end when this process exits, and it would not by itself when it is ended. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

// What is committed of a run: the machine, the command, and of whatever was repeated the median with its quartiles. Raw samples stay in
// `results/local`, and belong to a release.

/** Fields whose lists hold the same measurement, made again; one with names has rows. */
const REPEATED = new Set(['runs', 'ours', 'theirs', 'service', 'echo', 'bare'])
/** What says nothing about all repetitions together: when one began, how long it took, its extremes. */
const OF_A_REPETITION = new Set(['startedAt', 'finishedAt', 'seed', 'elapsedMs', 'timed', 'maxNs', 'p999Ns'])
/** What a summary says itself. */
const SUMMARIZED = 'samples'
const FEWEST_SAMPLES = 3
const DIGITS = 4

/** The same results with `[lower quartile, median, upper quartile]` in place of repetitions, or the one number that all are, under the command that measures them; a row a line. */
export function committedForm(results: object, command: string): string {
  return oneEachLine({ command, ...(summarized(results) as object) })
}

function summarized(value: unknown): unknown {
  if (typeof value === 'number') return short(value)
  if (isSamples(value)) return quartilesOf(value)
  if (isSummary(value)) return inOne([value.lowerQuartile, value.median, value.upperQuartile])
  if (Array.isArray(value)) return value.map(summarized)
  if (!isRecord(value)) return value
  const fields = Object.entries(value).filter(([name]) => name !== SUMMARIZED || !('median' in value || 'ns' in value))
  return Object.fromEntries(fields.map(([name, each]) => [name, isRepeated(name, each) ? ofRepetitions(each) : summarized(each)]))
}

function isRepeated(name: string, value: unknown): value is readonly Record<string, unknown>[] {
  return REPEATED.has(name) && Array.isArray(value) && value.length > 1 && value.every((each) => isRecord(each) && !('name' in each))
}

/** Of each field those of all repetitions. */
function ofRepetitions(repetitions: readonly Record<string, unknown>[]): object {
  const names = [...new Set(repetitions.flatMap(Object.keys))].filter((name) => !OF_A_REPETITION.has(name))
  return Object.fromEntries(
    names.map((name) => {
      // What did not occur in one of them is null there.
      const values = repetitions.map((each) => each[name]).filter((each) => each !== null && each !== undefined)
      if (values.every(isRecord)) return [name, ofRepetitions(values)]
      return [name, values.every((each) => typeof each === 'number') ? quartilesOf(values) : values.map(summarized)]
    }),
  )
}

function quartilesOf(samples: readonly number[]): number | readonly number[] | null {
  if (samples.length === 0) return null
  const { lowerQuartile, median, upperQuartile } = summaryOf(samples)
  return inOne([lowerQuartile, median, upperQuartile])
}

/** Three that are the same are one. */
function inOne(quartiles: readonly number[]): number | readonly number[] {
  const [first, ...others] = quartiles.map(short)
  return others.every((each) => each === first) ? (first as number) : quartiles.map(short)
}

function isSummary(value: unknown): value is Summary {
  return isRecord(value) && typeof value.median === 'number' && 'lowerQuartile' in value
}

function isSamples(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length >= FEWEST_SAMPLES && value.every((each) => typeof each === 'number')
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function short(value: number): number {
  return Number.isInteger(value) && Math.abs(value) < 10 ** DIGITS ? value : Number(value.toPrecision(DIGITS))
}
