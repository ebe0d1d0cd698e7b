import { inSlices } from '../later-turns.js'
import { exposition } from '../measures/exposition.js'
import type { Sample } from '../measures/measure.js'
import { exposedOf, type MetricJson } from '../metrics.js'
import { noFigures, type PageFigures, summed, withoutKeys } from './shared-figures.js'
import type { WorkerPool } from './worker-pool.js'

/** Gauges that are no sum over the processes. */
const AGGREGATORS: Readonly<Record<string, 'first' | 'min' | 'max' | 'omit'>> = {
  sluicegate_build_info: 'first',
  sluicegate_policies: 'first',
  sluicegate_store_info: 'first',
  sluicegate_store_reachable: 'min',
  sluicegate_store_look_seconds: 'max',
  // Of the region, not of a process of it.
  sluicegate_home_out: 'max',
  sluicegate_regions: 'max',
  sluicegate_region_share: 'max',
}
/** Of these the primary process alone has the figures. */
const OF_PRIMARY = /^sluicegate_(?:config_|snapshot_)/

/** The figures of all processes together. A worker that does not answer counts with its last ones, one that has ended with its counts. */
export class FiguresCollector {
  readonly #workers: Pick<WorkerPool, 'call' | 'has'>
  readonly #lastFigures = new Map<number, PageFigures>()
  readonly #lastMetrics = new Map<number, MetricJson[]>()
  /** Of workers that have ended. */
  #endedFigures = noFigures()
  #endedMetrics: MetricJson[] = []
  /** Those of one worker after the other. */
  #adding: Promise<void> = Promise.resolve()

  constructor(workers: Pick<WorkerPool, 'call' | 'has'>) {
    this.#workers = workers
  }

  /** @param own the figures of this process. */
  async page(own: PageFigures, withKeys: boolean): Promise<PageFigures> {
    for (const [slot, figures] of await this.#workers.call<PageFigures>('page', withKeys))
      if (this.#workers.has(slot)) this.#lastFigures.set(slot, figures)
    return summed([this.#endedFigures, ...this.#lastFigures.values(), own])
  }

  /**
   * All metrics, in the text format of Prometheus, as bytes: a text of megabytes would be made into them by the worker at once.
   *
   * @param own those of this process.
   */
  async metrics(own: readonly MetricJson[]): Promise<Buffer> {
    for (const [slot, json] of await this.#workers.call<MetricJson[]>('metrics')) {
      if (!this.#workers.has(slot)) continue
      this.#lastMetrics.set(
        slot,
        json.filter(({ name }) => !OF_PRIMARY.test(name)),
      )
    }
    return inSlices(expositionOf([own, this.#endedMetrics, ...this.#lastMetrics.values()]))
  }

  /** The worker of a slot has ended: its counts stay, its keys are elsewhere or gone. */
  ended(slot: number): void {
    this.#endedFigures = summed([this.#endedFigures, withoutKeys(this.#lastFigures.get(slot) ?? noFigures())])
    this.#lastFigures.delete(slot)
    const counters = (this.#lastMetrics.get(slot) ?? []).filter(({ type }) => ['counter', 'histogram'].includes(String(type)))
    this.#lastMetrics.delete(slot)
    this.#adding = this.#adding.then(async () => {
      this.#endedMetrics = await inSlices(together([this.#endedMetrics, counters]))
    })
  }
}

/** Between two of these numbers of values others have their turn. */
const VALUES_OF_STEP = 64

/** What becomes of the values of several processes, by the name in {@link MetricJson}. What is omitted has none. */
const AGGREGATES: Readonly<Record<string, (values: readonly number[]) => number>> = {
  sum: (values) => values.reduce((sum, value) => sum + value, 0),
  first: ([first = 0]) => first,
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  average: (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
}

/** The steps of writing the metrics of all processes as one exposition. */
function* expositionOf(all: readonly (readonly MetricJson[])[]): Generator<unknown, Buffer> {
  return yield* exposition(exposedOf(yield* together(all)))
}

/** The steps of making one metric of those of the same name. */
function* together(all: readonly (readonly MetricJson[])[]): Generator<void, MetricJson[]> {
  const byName = new Map<string, MetricJson[]>()
  for (const metric of all.flat()) {
    const same = byName.get(metric.name) ?? []
    byName.set(metric.name, same)
    same.push(metric)
  }
  const metrics: MetricJson[] = []
  let values = 0
  for (const [name, same] of byName) {
    const [first] = same as [MetricJson]
    const aggregator = AGGREGATORS[name] ?? String(first.aggregator)
    const aggregate = AGGREGATES[aggregator]
    if (aggregate === undefined) continue
    const series = new Map<string, { readonly sample: Sample; readonly values: number[] }>()
    for (const { values: samples } of exposedOf(same)) {
      for (const sample of samples) {
        const key = `${sample.metricName}${JSON.stringify(sample.labels)}`
        const found = series.get(key)
        if (found === undefined) series.set(key, { sample, values: [sample.value] })
        else found.values.push(sample.value)
        if (++values % VALUES_OF_STEP === 0) yield
      }
    }
    const summed = Array.from(series.values(), ({ sample, values: each }) => ({ ...sample, value: aggregate(each) }))
    metrics.push({ ...first, values: summed } as unknown as MetricJson)
    yield
  }
  return metrics
}
