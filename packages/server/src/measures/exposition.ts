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
/** In UTF-8, of those that have a place of their own in a text. */
const BYTES_OF_CHARACTER = 3

/** The room for an exposition: what the one before took, and more. */
let expectedBytes = 65_536

/**
 * The steps of writing `metrics` in Prometheus' text format 0.0.4, as bytes: megabytes of a text would be made of them and into them at once. Source:
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
export function* exposition(metrics: Iterable<Exposed>): Generator<void, Buffer> {
  let bytes = Buffer.allocUnsafe(expectedBytes)
  let at = 0
  const write = (text: string): void => {
    const most = at + text.length * BYTES_OF_CHARACTER
    if (most > bytes.length) bytes = Buffer.concat([bytes.subarray(0, at)], 2 * most)
    at += bytes.write(text, at)
  }
  let lines = 0
  for (const { name, help, type, values } of metrics) {
    write(`# HELP ${name} ${help.replace(/[\\\n]/g, escaped)}\n# TYPE ${name} ${type}\n`)
    for (const { metricName = name, labels, value } of values) {
      write(`${metricName}${labelsOf(labels)} ${numberOf(value)}\n`)
      if (++lines % LINES_OF_STEP === 0) yield
    }
    yield
  }
  expectedBytes = at + Math.ceil(at / 8)
  return bytes.subarray(0, at)
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
