import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type BatchObservableCallback,
  type Context,
  type ContextManager,
  context,
  createNoopMeter,
  type Meter,
  type MetricOptions,
  metrics,
  type Observable,
  propagation,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  type SpanStatus,
  type TextMapPropagator,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from '@opentelemetry/api'

/** A span that has ended. */
export interface EndedSpan {
  readonly name: string
  readonly kind: keyof typeof SpanKind
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | undefined
  readonly attributes: Attributes
  readonly status: SpanStatus | undefined
}

/** One value of an instrument. */
export interface Observation {
  readonly name: string
  readonly unit: string | undefined
  readonly kind: 'counter' | 'gauge'
  readonly value: number
  readonly attributes: Attributes
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** Providers of OpenTelemetry that keep in memory what they receive. */
export class MemoryTelemetry {
  readonly spans: EndedSpan[] = []
  readonly #callbacks = new Map<BatchObservableCallback, readonly Observable[]>()
  readonly #instruments = new Map<Observable, Omit<Observation, 'value' | 'attributes'>>()
  readonly #onEnd: (span: EndedSpan) => void
  /** Whether new spans are recorded. */
  isSampling = true
  /** How often the service has asked to send what is held. */
  flushes = 0

  constructor(onEnd: (span: EndedSpan) => void = () => undefined) {
    this.#onEnd = onEnd
  }

  /** Registers providers for the whole process. */
  register(): void {
    trace.setGlobalTracerProvider(this.#tracers())
    context.setGlobalContextManager(new LocalContexts().enable())
    propagation.setGlobalPropagator(TRACE_CONTEXT)
    metrics.setGlobalMeterProvider(Object.assign({ getMeter: () => this.#meter() }, { forceFlush: () => this.#flush() }))
  }

  unregister(): void {
    for (const api of [trace, context, propagation, metrics]) api.disable()
  }

  /** What the instruments say now. */
  collect(): Observation[] {
    const observations: Observation[] = []
    for (const [callback, declared] of this.#callbacks) {
      callback({
        observe: (instrument, value, attributes = {}) => {
          const known = this.#instruments.get(instrument)
          if (known === undefined || !declared.includes(instrument)) throw new Error('an instrument that was not declared')
          observations.push({ ...known, value, attributes })
        },
      })
    }
    return observations
  }

  async #flush(): Promise<void> {
    this.flushes++
    throw new Error('the collector is away')
  }

  #tracers(): TracerProvider {
    const tracer = {
      startSpan: (name: string, options: SpanOptions = {}, parent: Context = context.active()) => this.#span(name, options, parent),
    }
    return Object.assign({ getTracer: () => tracer as Tracer }, { forceFlush: () => this.#flush() })
  }

  #span(name: string, { kind = SpanKind.INTERNAL, attributes: first = {} }: SpanOptions, parent: Context): Span {
    const above = trace.getSpanContext(parent)
    const spanContext: SpanContext = {
      traceId: above?.traceId ?? hex(32),
      spanId: hex(16),
      traceFlags: this.isSampling ? TraceFlags.SAMPLED : TraceFlags.NONE,
    }
    if (!this.isSampling) return trace.wrapSpanContext(spanContext)
    const attributes: Attributes = { ...first }
    let status: SpanStatus | undefined
    const span = {
      spanContext: () => spanContext,
      isRecording: () => true,
      setAttribute: (key: string, value: string) => Object.assign(attributes, { [key]: value }),
      setAttributes: (more: Attributes) => Object.assign(attributes, more),
      setStatus: (next: SpanStatus) => {
        status = next
      },
      end: () => {
        const { traceId, spanId } = spanContext
        const kindName = SpanKind[kind] as keyof typeof SpanKind
        const ended = { name, kind: kindName, traceId, spanId, parentId: above?.spanId, attributes, status }
        this.spans.push(ended)
        this.#onEnd(ended)
      },
    }
    return span as unknown as Span
  }

  #meter(): Meter {
    const made =
      (kind: Observation['kind']) =>
      (name: string, options?: MetricOptions): Observable => {
        const instrument: Observable = { addCallback: () => undefined, removeCallback: () => undefined }
        this.#instruments.set(instrument, { name, unit: options?.unit, kind })
        return instrument
      }
    return Object.assign(Object.create(createNoopMeter()) as Meter, {
      createObservableCounter: made('counter'),
      createObservableGauge: made('gauge'),
      addBatchObservableCallback: (callback: BatchObservableCallback, declared: Observable[]) => this.#callbacks.set(callback, declared),
      removeBatchObservableCallback: (callback: BatchObservableCallback) => this.#callbacks.delete(callback),
    })
  }
}

/** W3C Trace Context, as far as a server needs it. */
const TRACE_CONTEXT: TextMapPropagator = {
  fields: () => ['traceparent'],
  inject: () => undefined,
  extract(within, carrier, getter) {
    const [, traceId, spanId, flags] = TRACEPARENT.exec(String(getter.get(carrier, 'traceparent'))) ?? []
    if (traceId === undefined || spanId === undefined) return within
    return trace.setSpanContext(within, { traceId, spanId, traceFlags: Number.parseInt(flags as string, 16), isRemote: true })
  },
}

class LocalContexts implements ContextManager {
  readonly #local = new AsyncLocalStorage<Context>()

  active(): Context {
    return this.#local.getStore() ?? ROOT_CONTEXT
  }

  with<Args extends unknown[], Run extends (...args: Args) => ReturnType<Run>>(
    within: Context,
    run: Run,
    thisArg?: ThisParameterType<Run>,
    ...args: Args
  ): ReturnType<Run> {
    return this.#local.run(within, () => run.apply(thisArg, args))
  }

  bind<Target>(_: Context, target: Target): Target {
    return target
  }

  enable(): this {
    return this
  }

  disable(): this {
    this.#local.disable()
    return this
  }
}

let made = 0

function hex(length: number): string {
  return (++made).toString(16).padStart(length, '0')
}
