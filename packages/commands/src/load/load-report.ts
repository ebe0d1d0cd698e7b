import type { Report, ReportSection } from '../report/report.js'
import type { KeyPlan } from './key-choice.js'
import type { LoadPlan } from './load-plan.js'
import type { LoadResult, Percentiles } from './load-result.js'
import { machineText } from './load-result.js'

/** The result as a report with tables and plots. */
export function loadReport(result: LoadResult, date: Date): Report {
  return {
    title: 'Sluicegate load',
    subtitle: `${result.target}, ${loopText(result.loop)}, keys ${keysText(result.keys)}, seed ${result.seed}; ${machineText()}, ${date.toISOString()}`,
    sections: [requests(result), latencies(result), ...errors(result), overTime(result), latencyOverTime(result), distribution(result)],
  }
}

/** Such as `open loop, constant 1,000/s`. */
export function loopText(loop: LoadPlan['loop']): string {
  if (loop.kind === 'closed') return `closed loop of ${loop.callers} callers`
  const { arrivals } = loop
  if (arrivals.kind === 'ramp') return `open loop, ${rateText(arrivals.fromRate)} to ${rateText(arrivals.toRate)}`
  const size = arrivals.kind === 'burst' ? ` of ${arrivals.size}` : ''
  return `open loop, ${arrivals.kind}${size}, ${rateText(arrivals.rate)}`
}

function rateText(rate: number): string {
  return `${rate.toLocaleString('en')}/s`
}

function keysText(keys: KeyPlan): string {
  switch (keys.kind) {
    case 'hot':
      return 'hot'
    case 'uniform':
      return `uniform:${keys.keys}`
    case 'zipf':
      return `zipf:${keys.keys}:${keys.exponent}`
    case 'file':
      return `file:${keys.path}`
  }
}

function requests({ sent, allowed, denied, errors, unanswered, seconds, perSecond, processes }: LoadResult): ReportSection {
  return {
    heading: 'Requests',
    table: {
      columns: ['sent', 'allowed', 'denied', 'errors', 'unanswered', 'seconds', 'answers/s', 'processes'],
      rows: [[sent, allowed, denied, errors, unanswered, seconds, perSecond, processes]],
    },
  }
}

function latencies({ latencyMs, serviceMs, loop }: LoadResult): ReportSection {
  const row = (name: string, { p50, p90, p99, p999, p9999, max, mean }: Percentiles): (string | number)[] => [
    name,
    mean,
    p50,
    p90,
    p99,
    p999,
    p9999,
    max,
  ]
  return {
    heading: 'Latency in milliseconds',
    ...(loop.kind === 'closed' && {
      text: ['A closed loop waits for slow answers and sends less meanwhile, so its percentiles hide stalls. Use an open loop for those.'],
    }),
    table: {
      columns: ['from', 'mean', '50 %', '90 %', '99 %', '99.9 %', '99.99 %', 'max'],
      rows: loop.kind === 'open' ? [row('intended start', latencyMs), row('sending', serviceMs)] : [row('sending', serviceMs)],
    },
  }
}

function errors({ errorTexts }: LoadResult): ReportSection[] {
  const rows = Object.entries(errorTexts)
  return rows.length === 0 ? [] : [{ heading: 'Errors', table: { columns: ['error', 'requests'], rows } }]
}

function overTime({ timeline }: LoadResult): ReportSection {
  return {
    heading: 'Answers per second',
    plot: {
      x: 'number',
      xLabel: 'seconds from the start',
      yLabel: 'per second',
      xs: timeline.map(({ second }) => second),
      series: [
        { label: 'sent', ys: timeline.map(({ sent }) => sent), kind: 'dashed' },
        { label: 'allowed', ys: timeline.map(({ allowed }) => allowed), kind: 'area' },
        { label: 'denied', ys: timeline.map(({ denied }) => denied) },
        { label: 'errors', ys: timeline.map(({ errors }) => errors) },
      ],
    },
  }
}

function latencyOverTime({ timeline }: LoadResult): ReportSection {
  const positive = (value: number): number | null => (value > 0 ? value : null)
  return {
    heading: 'Latency over time',
    plot: {
      x: 'number',
      xLabel: 'seconds from the start',
      yLabel: 'milliseconds',
      xs: timeline.map(({ second }) => second),
      series: [
        { label: '50 %', ys: timeline.map(({ p50Ms }) => positive(p50Ms)) },
        { label: '99 %', ys: timeline.map(({ p99Ms }) => positive(p99Ms)) },
      ],
      logY: true,
    },
  }
}

function distribution({ distribution }: LoadResult): ReportSection {
  const points = distribution.filter(({ latencyMs }) => latencyMs > 0)
  return {
    heading: 'Distribution of latency',
    text: ['10 on the x axis is the slowest request of ten, 1,000 the slowest of a thousand.'],
    plot: {
      x: 'number',
      xLabel: 'one request in',
      yLabel: 'milliseconds',
      xs: points.map(({ share }) => 1 / (1 - share)),
      series: [{ label: 'latency', ys: points.map(({ latencyMs }) => latencyMs) }],
      logX: true,
      logY: true,
    },
  }
}
