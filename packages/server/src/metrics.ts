import type { Registry } from 'prom-client'
import { inSlices } from './later-turns.js'
import { type Exposed, exposition } from './measures/exposition.js'
import type { Measure } from './measures/measure.js'
import type { Part } from './part.js'

/** That of Prometheus' text format 0.0.4. */
const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The exposition of the service and of its process. */
export interface Metrics extends Part {
  readonly contentType: string
  /** Prometheus text format 0.0.4, in UTF-8. It costs milliseconds, between which others have their turn. */
  render(): Promise<Buffer>
  /** The same as data, to be summed over processes. */
  json(): Promise<MetricJson[]>
}

/** A metric of one process. */
export type MetricJson = Awaited<ReturnType<Registry['getMetricsAsJSON']>>[number]

/** Metrics for Prometheus, read at each scrape. Their library is loaded when the service listens. */
export function createMetrics(measures: readonly Measure[]): Metrics {
  let loading: Promise<Registry> | undefined
  const registry = (): Promise<Registry> => {
    loading ??= processRegistry()
    return loading
  }
  const ofProcess = async (): Promise<MetricJson[]> => (await registry()).getMetricsAsJSON()
  return {
    name: 'metrics',
    ready: () => void registry(),
    contentType: CONTENT_TYPE,
    render: async () => inSlices(exposition([...exposedOf(await ofProcess()), ...measures.map(exposed)])),
    json: async () => inSlices(collected(await ofProcess(), measures)),
  }
}

/** @param metrics with their values as prom-client types them: without those of labels and parts. */
export function exposedOf(metrics: readonly MetricJson[]): Exposed[] {
  return metrics as unknown as Exposed[]
}

/** What Node.js tells of the process. */
async function processRegistry(): Promise<Registry> {
  const { collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  // Gauges with a counter's name: Prometheus' own check refuses them.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
  return registry
}

function exposed({ name, help, type, samples }: Measure): Exposed {
  return {
    name,
    help,
    type,
    values: { [Symbol.iterator]: () => samples()[Symbol.iterator]() },
  }
}

function* collected(ofProcess: MetricJson[], measures: readonly Measure[]): Generator<void, MetricJson[]> {
  const all = [...ofProcess]
  for (const { name, help, type, samples } of measures) {
    all.push({ name, help, type, aggregator: 'sum', values: Array.from(samples()) } as unknown as MetricJson)
    yield
  }
  return all
}
