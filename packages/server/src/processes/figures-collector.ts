import { AggregatorRegistry } from 'prom-client'
import type { MetricJson } from '../metrics.js'
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
   * All metrics, in the text format of Prometheus.
   *
   * @param own those of this process.
   */
  async metrics(own: readonly MetricJson[]): Promise<string> {
    for (const [slot, json] of await this.#workers.call<MetricJson[]>('metrics')) {
      if (!this.#workers.has(slot)) continue
      this.#lastMetrics.set(
        slot,
        json.filter(({ name }) => !OF_PRIMARY.test(name)),
      )
    }
    return AggregatorRegistry.aggregate([own, this.#endedMetrics, ...this.#lastMetrics.values()].map(withAggregators)).metrics()
  }

  /** The worker of a slot has ended: its counts stay, its keys are elsewhere or gone. */
  ended(slot: number): void {
    this.#endedFigures = summed([this.#endedFigures, withoutKeys(this.#lastFigures.get(slot) ?? noFigures())])
    this.#lastFigures.delete(slot)
    const counters = (this.#lastMetrics.get(slot) ?? []).filter(({ type }) => ['counter', 'histogram'].includes(String(type)))
    this.#lastMetrics.delete(slot)
    void AggregatorRegistry.aggregate([this.#endedMetrics, counters])
      .getMetricsAsJSON()
      .then((json) => {
        this.#endedMetrics = json as unknown as MetricJson[]
      })
  }
}

function withAggregators(json: readonly MetricJson[]): MetricJson[] {
  return json.map((metric) => ({ ...metric, aggregator: AGGREGATORS[metric.name] ?? metric.aggregator }))
}
