import type { Sample } from './measure.js'

/** A metric with its values, read as they are written. */
export interface Exposed {
  readonly name: string
  readonly help: string
  /** That of Prometheus, such as `counter`. */
  readonly type: unknown
  readonly values: Iterable<Sample>
}

/** Between two of these numbers of lines others have their turn. */
const LINES_OF_STEP = 64

/** The steps of writing `metrics` in Prometheus' text format 0.0.4, as bytes: megabytes of a text would be made of them and into them at once. Source: https://prometheus.io/docs/instrumenting/exposition_formats/ */
export function* exposition(metrics: Iterable<Exposed>): Generator<void, Buffer> {
  // A text that is joined from many is joined when it is read: megabytes of it at once at the end.
  const written: Buffer[] = []
  let text = ''
  let lines = 0
  for (const { name, help, type, values } of metrics) {
    text += `# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n# TYPE ${name} ${type}\n`
    for (const { metricName = name, labels, value } of values) {
      text += `${metricName}${labelsOf(labels)} ${numberOf(value)}\n`
      if (++lines % LINES_OF_STEP !== 0) continue
      written.push(Buffer.from(text))
      text = ''
      yield
    }
    yield
  }
  written.push(Buffer.from(text))
  return Buffer.concat(written)
}

function labelsOf(labels: Sample['labels'] = {}): string {
  let text = ''
  for (const name in labels) {
    const value = String(labels[name])
    text += `${text === '' ? '{' : ','}${name}="${/["\\\n]/.test(value) ? value.replace(/["\\\n]/g, escaped) : value}"`
  }
  return text === '' ? '' : `${text}}`
}

function escaped(sign: string): string {
  return sign === '\n' ? '\\n' : `\\${sign}`
}

function numberOf(value: number): string {
  if (Number.isNaN(value)) return 'NaN'
  return Number.isFinite(value) ? String(value) : value > 0 ? '+Inf' : '-Inf'
}
