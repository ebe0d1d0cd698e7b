import type { BatchObservableCallback, Meter, Observable } from '@opentelemetry/api'
import type { Measure, Sample } from '../measures/measure.js'
import type { OpenTelemetryApi } from './open-telemetry.js'

const SCOPE = 'sluicegate'

/** The unit at the end of a name of Prometheus, which is no part of it here. */
const UNITS: readonly (readonly [suffix: string, unit: string])[] = [
  ['_seconds', 's'],
  ['_bytes', 'By'],
]

/** A name of Prometheus in the form of OpenTelemetry, from which its exporters make the name of Prometheus again. */
export function instrumentName(name: string): { readonly name: string; readonly unit: string } {
  const bare = name.replace(/_total$/, '').replace(/^sluicegate_/, 'sluicegate.')
  for (const [suffix, unit] of UNITS) if (bare.endsWith(suffix)) return { name: bare.slice(0, -suffix.length), unit }
  return { name: bare, unit: '' }
}

/**
 * Reports `measures` as observable instruments of the program's meter provider, if there is one. There are no observable histograms: the parts
 * of one are counters, of which that of the buckets has the attribute `le`. Returns a function that ends the report.
 */
export function reportToMeter(api: OpenTelemetryApi, measures: readonly Measure[], version: string): () => void {
  const meter = api.metrics.getMeter(SCOPE, version)
  const reports = measures.map((measure) => (measure.type === 'histogram' ? histogramReport(meter, measure) : report(meter, measure)))
  const instruments = reports.flatMap(({ instruments: own }) => own)
  const observe: BatchObservableCallback = (result) => {
    for (const { measure, instrumentOf } of reports) {
      for (const sample of measure.samples()) result.observe(instrumentOf(sample), sample.value, sample.labels)
    }
  }
  meter.addBatchObservableCallback(observe, instruments)
  return () => meter.removeBatchObservableCallback(observe, instruments)
}

interface Report {
  readonly measure: Measure
  readonly instruments: Observable[]
  instrumentOf(sample: Sample): Observable
}

function report(meter: Meter, measure: Measure): Report {
  const { name, unit } = instrumentName(measure.name)
  const options = { description: measure.help, unit }
  const instrument = measure.type === 'counter' ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options)
  return { measure, instruments: [instrument], instrumentOf: () => instrument }
}

function histogramReport(meter: Meter, measure: Measure): Report {
  const { name, unit } = instrumentName(measure.name)
  const part = (suffix: string, partUnit: string): Observable =>
    meter.createObservableCounter(`${name}.${suffix}`, { description: measure.help, unit: partUnit })
  const parts: Readonly<Record<string, Observable>> = { bucket: part('bucket', ''), sum: part('sum', unit), count: part('count', '') }
  return {
    measure,
    instruments: Object.values(parts),
    instrumentOf: ({ metricName }) => parts[(metricName ?? '').slice(measure.name.length + 1)] as Observable,
  }
}
