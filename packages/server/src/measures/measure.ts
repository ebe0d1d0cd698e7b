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

/** What has figures, by its labels. */
export type Figured<Figures> = readonly [labels: Sample['labels'], figures: Figures]

/**
 * Measures of figures that are read at one place: one for each row. A row shows what another has read, unless it has shown that itself: the figures of
 * thousands of policies cost more to read than to write.
 */
export function measuresOf<Figures>(read: () => Iterable<Figured<Figures>>, rows: readonly MeasureRow<Figures>[]): Measure[] {
  let last: readonly Figured<Figures>[] | undefined
  return rows.map(([type, name, help, figure]) => {
    let shown: readonly Figured<Figures>[] | undefined
    function* samples(): Generator<Sample> {
      const known = last === shown ? undefined : last
      const all: Figured<Figures>[] = []
      for (const each of known ?? read()) {
        if (known === undefined) all.push(each)
        yield { labels: each[0], value: Number(each[1][figure]) }
      }
      if (known === undefined) last = all
      shown = last
    }
    return { type, name, help, samples }
  })
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

/** The figures of each policy that has some. */
export function figuresOf<Figures>(
  engine: Engine,
  read: (served: ServedPolicy) => Figures | undefined,
  labels: (policy: string, figures: Figures) => Sample['labels'] = (policy) => ({ policy }),
): () => Iterable<Figured<Figures>> {
  return function* () {
    for (const served of engine.policies) {
      const figures = read(served)
      if (figures !== undefined) yield [labels(served.name, figures), figures]
    }
  }
}

/** One value for each name. `of` is the label that all have, and its value. */
export function* labelled(
  label: string,
  values: Iterable<readonly [name: string, value: number]>,
  of?: readonly [label: string, name: string],
): Generator<Sample> {
  // No spread: of thousands of policies it takes ten times as long, and what it makes outlives two collections.
  for (const [name, value] of values) yield { labels: of === undefined ? { [label]: name } : { [of[0]]: of[1], [label]: name }, value }
}
