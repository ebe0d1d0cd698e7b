import { ratioOf, type Summary } from 'sluicegate-testkit/samples.js'
import type { Effort, Measurement } from './measure.js'
import { type Claim, claim } from './report.js'

/** Ratios that nothing is judged by: a column of the table. */
export interface Comparison {
  readonly head: string
  /** Of some subjects, by their names. */
  readonly ratios: Readonly<Record<string, Summary>>
}

/** A table of the report. */
export interface Answer {
  readonly title: string
  /** What the reader must know to read the figures. */
  readonly note: string
  readonly unit: 'ns' | 'bytes'
  readonly measurements: readonly Measurement[]
  readonly verdicts: readonly Claim[]
  readonly comparison?: Comparison
}

/** One thing to find out; `--only` names it. */
export interface Question {
  readonly name: string
  ask(effort: Effort): Promise<Answer[]>
}

/** The measurement of a subject, by its name. */
export function of(measurements: readonly Measurement[], subject: string): Measurement {
  const found = measurements.find((measurement) => measurement.subject === subject)
  if (found === undefined) throw new Error(`${subject} was not measured`)
  return found
}

/** Judges a figure against a bound. */
export function atMost(what: string, { ns }: Measurement, bound: number, unit: 'ns' | 'bytes' = 'ns'): Claim {
  return claim(what, ns, `<= ${bound} ${unit}`)
}

/** Judges the ratio of two subjects of one run, round by round, against a bound such as `1/3`. */
export function atMostTimes(what: string, over: Measurement, under: Measurement, bound: string): Claim {
  return claim(`${what}: ${over.subject} / ${under.subject}`, ratioOf(over.samples, under.samples), `<= ${bound}`)
}

/** Ratios of subjects of one run, round by round, each in the row of the first. */
export function compared(head: string, pairs: readonly (readonly [over: Measurement, under: Measurement])[]): Comparison {
  return { head, ratios: Object.fromEntries(pairs.map(([over, under]) => [over.subject, ratioOf(over.samples, under.samples)])) }
}

/** Those of `all` that a command line names, or all where it names none; a name that is none of them ends the program with its usage. */
export function chosenNames<Name extends string>(
  what: string,
  wanted: readonly string[],
  all: readonly Name[],
  usage: string,
): readonly Name[] {
  const unknown = wanted.filter((name) => !all.includes(name as Name))
  if (unknown.length === 0) return wanted.length > 0 ? all.filter((name) => wanted.includes(name)) : all
  console.error(`no ${what} ${unknown.join(', ')}\n\n${usage}`)
  process.exit(2)
}
