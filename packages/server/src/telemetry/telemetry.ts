import type { DecisionObserver } from '../engine/decision-observer.js'
import type { Measure } from '../measures.js'
import { CallSpans } from './call-spans.js'
import type { CallTracing } from './call-tracing.js'
import { reportToMeter } from './meter-report.js'
import { openTelemetryApi } from './open-telemetry.js'

/** What the service reports to OpenTelemetry. */
export interface Telemetry {
  /** Undefined where calls are not followed. */
  readonly tracing: (CallTracing & DecisionObserver) | undefined
  /** Returns a function that ends the report. */
  report(measures: readonly Measure[]): () => void
}

const NONE: Telemetry = { tracing: undefined, report: () => () => undefined }

/** Telemetry to the providers that the program has registered before; none where the API is not installed. */
export async function telemetryOf(version: string): Promise<Telemetry> {
  const api = await openTelemetryApi()
  if (api === undefined) return NONE
  return { tracing: CallSpans.over(api, version), report: (measures) => reportToMeter(api, measures, version) }
}
