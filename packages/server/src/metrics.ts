import { collectDefaultMetrics, type Metric, Registry } from 'prom-client'
import type { Measure } from './measures/measure.js'

/** The exposition of the service and of its process. */
export interface Metrics {
  readonly contentType: string
  /** Prometheus text format 0.0.4. It costs milliseconds. */
  render(): Promise<string>
  /** The same as data, to be summed over processes. */
  json(): Promise<MetricJson[]>
}

/** A metric of one process. */
export type MetricJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]

/** Metrics for Prometheus, read at each scrape. */
export function createMetrics(measures: readonly Measure[]): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges with a counter's name: Prometheus' own check refuses them.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
  for (const measure of measures) registry.registerMetric(collected(measure))
  return { contentType: registry.contentType, render: () => registry.metrics(), json: () => registry.getMetricsAsJSON() }
}

/** The library's own classes would keep a second copy of each count. */
function collected({ type, name, help, samples }: Measure): Metric {
  const metric = {
    name,
    help,
    type,
    aggregator: 'sum',
    get: async () => ({ name, help, type, aggregator: 'sum', values: samples() }),
    reset() {},
  }
  return metric as unknown as Metric
}
