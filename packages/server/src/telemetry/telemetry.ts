import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import type { Attributes, Context, Span, Tracer } from '@opentelemetry/api'
import { StoreError } from 'sluicegate'
import type { Awaitable } from '../engine/awaitable.js'
import type { DecisionObserver, ObservedDecision } from '../engine/outcome.js'
import type { Measure } from '../measures/measure.js'
import type { CallTracing, TracedCall } from '../protocols/call-tracing.js'
import { reportToMeter } from './meter-report.js'
import { type OpenTelemetryApi, openTelemetryApi } from './open-telemetry.js'

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

const SCOPE = 'sluicegate'
/** Sources, the slowest last: a call took as long as the slowest of its decisions. */
const SOURCES = ['memory', 'lease', 'store', 'outage'] as const

/** What was decided in one call. */
interface OpenCall {
  decisions: number
  /** The first decision, or the first that denies. */
  shown: ObservedDecision | undefined
  source: (typeof SOURCES)[number] | undefined
  isOver: boolean | undefined
}

/** A span for each call, with what was decided in it. */
class CallSpans implements CallTracing, DecisionObserver {
  readonly #api: OpenTelemetryApi
  readonly #tracer: Tracer
  readonly #open = new AsyncLocalStorage<OpenCall>()

  private constructor(api: OpenTelemetryApi, tracer: Tracer) {
    this.#api = api
    this.#tracer = tracer
  }

  /** Undefined where the program has registered no provider of tracers: calls then cost nothing. */
  static over(api: OpenTelemetryApi, version: string): CallSpans | undefined {
    const provider = api.trace.getTracerProvider()
    const isRegistered = !(provider instanceof api.ProxyTracerProvider) || provider.getDelegateTracer(SCOPE) !== undefined
    return isRegistered ? new CallSpans(api, provider.getTracer(SCOPE, version)) : undefined
  }

  run<Result>(call: TracedCall, act: () => Awaitable<Result>): Awaitable<Result> {
    const { context, trace } = this.#api
    const { parent, kind } = this.#parentOf(call)
    const span = this.#tracer.startSpan(call.name, { kind, attributes: call.attributes }, parent)
    const within = trace.setSpan(parent, span)
    if (!span.isRecording()) return this.#ended(span, () => context.with(within, act))
    const open: OpenCall = { decisions: 0, shown: undefined, source: undefined, isOver: undefined }
    return this.#ended(
      span,
      () => this.#open.run(open, () => context.with(within, act)),
      () => ({ ...attributesOf(open), ...call.endAttributes?.() }),
    )
  }

  decided(decision: ObservedDecision): void {
    const open = this.#open.getStore()
    if (open === undefined) return
    open.decisions++
    if (open.shown === undefined || (open.shown.outcome === 'allowed' && decision.outcome !== 'allowed')) open.shown = decision
    const { source } = decision
    if (source !== undefined && (open.source === undefined || SOURCES.indexOf(source) > SOURCES.indexOf(open.source))) open.source = source
  }

  verdict(isOver: boolean): void {
    const open = this.#open.getStore()
    if (open !== undefined) open.isOver = isOver
  }

  /** Within a span of the program's own instrumentation, which has read the headers; else the caller's. */
  #parentOf({ headers }: TracedCall): { parent: Context; kind: number } {
    const { context, propagation, trace, SpanKind } = this.#api
    const active = context.active()
    if (trace.getSpan(active) !== undefined) return { parent: active, kind: SpanKind.INTERNAL }
    return { parent: headers === undefined ? active : propagation.extract(active, headers), kind: SpanKind.SERVER }
  }

  #ended<Result>(span: Span, act: () => Awaitable<Result>, attributes?: () => Attributes): Awaitable<Result> {
    const end = (error?: unknown): void => {
      if (attributes !== undefined) span.setAttributes(attributes())
      if (error !== undefined) this.#fail(span, error)
      span.end()
    }
    try {
      const result = act()
      if (!(result instanceof Promise)) {
        end()
        return result
      }
      return result.then(
        (value: Result) => {
          end()
          return value
        },
        (error: unknown) => {
          end(error)
          throw error
        },
      )
    } catch (error) {
      end(error)
      throw error
    }
  }

  /** An outage is a fault of the service; other errors are answers to mistakes of the caller. */
  #fail(span: Span, error: unknown): void {
    const { code, name } = error as { readonly code?: unknown; readonly name?: unknown }
    span.setAttribute('error.type', String(code ?? name ?? 'error'))
    if (!(error instanceof StoreError)) return
    span.setAttribute('sluicegate.outcome', 'outage')
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: error.code })
  }
}

function attributesOf({ decisions, shown, source, isOver }: OpenCall): Attributes {
  const outcome = isOver === undefined ? shown?.outcome : isOver ? 'denied' : 'allowed'
  return {
    ...(shown?.policy !== undefined && { 'sluicegate.policy': shown.policy }),
    ...(outcome !== undefined && { 'sluicegate.outcome': outcome }),
    ...(source !== undefined && { 'sluicegate.source': source }),
    ...(decisions > 1 && { 'sluicegate.decisions': decisions }),
  }
}
