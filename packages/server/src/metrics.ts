import type { Metric, Registry } from 'prom-client'
import type { Measure } from './measures/measure.js'
import type { Part } from './part.js'

/** That of Prometheus' text format 0.0.4. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The exposition of the service and of its process. */
export interface Metrics extends Part {
  readonly contentType: string
  /** Prometheus text format 0.0.4. It costs milliseconds. */
  render(): Promise<string>
  /** The same as data, to be summed over processes. */
  json(): Promise<MetricJson[]>
}

/** A metric of one process. */
export type MetricJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]

/** Metrics for Prometheus, read at each scrape. Their library is loaded when the service listens. */
export function createMetrics(measures: readonly Measure[]): Metrics {
  let loading: Promise<Registry> | undefined
  const registry = (): Promise<Registry> => {
    loading ??= registryOf(measures)
    return loading
  }
  return {
    name: 'metrics',
    ready: () => void registry(),
    contentType: CONTENT_TYPE,
    render: async () => (await registry()).metrics(),
    json: async () => (await registry()).getMetricsAsJSON(),
  }
}

async function registryOf(measures: readonly Measure[]): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges with a counter's name: Prometheus' own check refuses them.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
  for (const measure of measures) registry.registerMetric(collected(measure))
  return registry
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
