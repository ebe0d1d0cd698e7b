import { setTimeout as wait } from 'node:timers/promises'
import type { DecisionObserver } from '../engine/decision-observer.js'
import type { Measure } from '../measures/measure.js'
import type { CallTracing } from '../protocols/call-tracing.js'
import { CallSpans } from './call-spans.js'
import { reportToMeter } from './meter-report.js'
import { openTelemetryApi } from './open-telemetry.js'

/** What the service reports to OpenTelemetry. */
export interface Telemetry {
  /** Undefined where calls are not followed. */
  readonly tracing: (CallTracing & DecisionObserver) | undefined
  /** Returns a function that ends the report. */
  report(measures: readonly Measure[]): () => void
  /** Lets the providers send what they hold, as far as they can in a moment: the process ends afterwards. */
  flush(): Promise<void>
}

/** How long the end of the service waits for a collector. */
const FLUSH_MS = 1_000

const NONE: Telemetry = { tracing: undefined, report: () => () => undefined, async flush() {} }

/** Telemetry to the providers that the program has registered before; none where the API is not installed. */
export async function telemetryOf(version: string): Promise<Telemetry> {
  const api = await openTelemetryApi()
  if (api === undefined) return NONE
  return {
    tracing: CallSpans.over(api, version),
    report: (measures) => reportToMeter(api, measures, version),
    async flush() {
      const tracers = api.trace.getTracerProvider()
      const providers = [tracers instanceof api.ProxyTracerProvider ? tracers.getDelegate() : tracers, api.metrics.getMeterProvider()]
      const flushed = Promise.allSettled(providers.map(async (provider) => (provider as Flushing).forceFlush?.()))
      // A timer that keeps the process alive: the stop has more to do.
      const timer = new AbortController()
      await Promise.race([flushed, wait(FLUSH_MS, undefined, timer).catch(() => undefined)])
      timer.abort()
    },
  }
}

/** What providers of SDKs have beside the API. */
interface Flushing {
  forceFlush?(): Promise<void>
}
