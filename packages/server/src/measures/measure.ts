import type { Engine, ServedPolicy } from '../engine/engine.js'

/** One value of a measure. */
export interface Sample {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  /** Where it differs from the measure's own name, as in a histogram. */
  readonly metricName?: string
}

/** What the service reports of itself, whatever system reads it. The names are those of Prometheus. */
export interface Measure {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly name: string
  readonly help: string
  /** Reads the values, each of them when it is asked for: a reader of many makes pauses. */
  samples(): Iterable<Sample>
}

export function counter(name: string, help: string, samples: () => Iterable<Sample>): Measure {
  return { type: 'counter', name, help, samples }
}

export function gauge(name: string, help: string, samples: () => Iterable<Sample>): Measure {
  return { type: 'gauge', name, help, samples }
}

/** A measure of one figure among several. */
export type MeasureRow<Figures> = readonly [type: 'counter' | 'gauge', name: string, help: string, figure: keyof Figures]

/** Measures of figures that are read at one place: one for each row. */
export function measuresOf<Figures>(
  samplesOf: (read: (figures: Figures) => number) => () => Iterable<Sample>,
  rows: readonly MeasureRow<Figures>[],
): Measure[] {
  return rows.map(([type, name, help, figure]) => ({ type, name, help, samples: samplesOf((figures) => Number(figures[figure])) }))
}

export function one(read: () => number): () => Iterable<Sample> {
  return () => [{ labels: {}, value: read() }]
}

export function ofPolicies(engine: Engine, read: (served: ServedPolicy) => Iterable<Sample>): () => Iterable<Sample> {
  return function* () {
    for (const served of engine.policies) yield* read(served)
  }
}

export function perPolicy(engine: Engine, read: (served: ServedPolicy) => number): () => Iterable<Sample> {
  return ofPolicies(engine, (served) => [{ labels: { policy: served.name }, value: read(served) }])
}

export function labelled(
  label: string,
  values: Iterable<readonly [name: string, value: number]>,
  others: Readonly<Record<string, string>> = {},
): Sample[] {
  return Array.from(values, ([name, value]) => ({ labels: { ...others, [label]: name }, value }))
}
