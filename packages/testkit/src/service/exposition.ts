/** One line of an exposition. */
export interface ExposedSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const META = /^# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)$/
const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y
const TYPES = ['counter', 'gauge', 'histogram', 'summary']

/**
 * Reads Prometheus' text format 0.0.4 and refuses every violation that a strict reader would: a sample before its type, a metric in two
 * places, a series twice, a counter without `_total`, a histogram that is not one.
 */
export function readExposition(text: string): ExposedSample[] {
  if (!text.endsWith('\n')) throw new Error('the last line must end')
  const types = new Map<string, string>()
  const helps = new Set<string>()
  const closed = new Set<string>()
  const seen = new Set<string>()
  const samples: ExposedSample[] = []
  let current = ''
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const [, kind, name, rest] = META.exec(line) ?? []
    if (kind !== undefined && name !== undefined && rest !== undefined) {
      if (name !== current && closed.has(name)) throw new Error(`${name} is in two places`)
      closed.add(name)
      current = name
      if (kind === 'HELP' ? helps.has(name) : types.has(name)) throw new Error(`two ${kind} of ${name}`)
      if (kind === 'HELP') helps.add(name)
      else if (TYPES.includes(rest)) types.set(name, rest)
      else throw new Error(`${name} is of no known type: ${rest}`)
      continue
    }
    const sample = readSample(line)
    const type = types.get(current)
    if (type === undefined || !helps.has(current)) throw new Error(`${line}: neither HELP nor TYPE before it`)
    if (!belongs(sample.name, current, type)) throw new Error(`${line}: does not belong to ${type} ${current}`)
    if (type === 'counter' && (!sample.name.endsWith('_total') || !(sample.value >= 0))) throw new Error(`${line}: no proper counter`)
    if (type !== 'counter' && current.endsWith('_total')) throw new Error(`${line}: only a counter is a total`)
    const series = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
    if (seen.has(series)) throw new Error(`${line}: the series is there twice`)
    seen.add(series)
    samples.push(sample)
  }
  for (const [name, type] of types) if (type === 'histogram') checkHistogram(name, samples)
  return samples
}

/** The value of one series; NaN when it is not there. */
export function seriesValue(samples: readonly ExposedSample[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = JSON.stringify(Object.entries(labels).sort())
  return (
    samples.find((sample) => sample.name === name && JSON.stringify(Object.entries(sample.labels).sort()) === wanted)?.value ?? Number.NaN
  )
}

function belongs(sample: string, metric: string, type: string): boolean {
  if (type === 'histogram') return ['_bucket', '_sum', '_count'].some((suffix) => sample === metric + suffix)
  return sample === metric || (type === 'summary' && [`${metric}_sum`, `${metric}_count`].includes(sample))
}

function readSample(line: string): ExposedSample {
  const [, name, labelText = '', number = ''] = SAMPLE.exec(line) ?? []
  if (name === undefined) throw new Error(`${line}: no sample`)
  const value = number === '+Inf' ? Number.POSITIVE_INFINITY : Number(number)
  if (Number.isNaN(value) && !/^nan$/i.test(number)) throw new Error(`${line}: ${number} is no number`)
  return { name, labels: readLabels(labelText, line), value }
}

function readLabels(text: string, line: string): Record<string, string> {
  const labels: [string, string][] = []
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const [, label, value] = LABEL.exec(text) ?? []
    if (label === undefined || value === undefined) throw new Error(`${line}: malformed labels`)
    if (labels.some(([other]) => other === label)) throw new Error(`${line}: ${label} is there twice`)
    labels.push([label, value.replace(/\\(["\\n])/g, (_, escaped) => (escaped === 'n' ? '\n' : escaped))])
  }
  return Object.fromEntries(labels)
}

/** Each set of labels but `le` is its own histogram. */
function checkHistogram(name: string, samples: readonly ExposedSample[]): void {
  const groups = new Map<string, ExposedSample[]>()
  for (const sample of samples.filter((each) => each.name === `${name}_bucket`)) {
    const { le: _, ...others } = sample.labels
    const group = JSON.stringify(others)
    groups.set(group, [...(groups.get(group) ?? []), sample])
  }
  for (const [others, buckets] of groups) {
    const labels = JSON.parse(others) as Record<string, string>
    const bounds = buckets.map((bucket) => (bucket.labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(bucket.labels.le)))
    const counts = buckets.map(({ value }) => value)
    if (bounds.at(-1) !== Number.POSITIVE_INFINITY || !bounds.every((bound, i) => i === 0 || bound > (bounds[i - 1] as number))) {
      throw new Error(`${name}: bounds must rise to +Inf`)
    }
    if (!counts.every((count, i) => i === 0 || count >= (counts[i - 1] as number))) throw new Error(`${name}: buckets must be cumulative`)
    const sum = seriesValue(samples, `${name}_sum`, labels)
    if (counts.at(-1) !== seriesValue(samples, `${name}_count`, labels) || !(sum >= 0))
      throw new Error(`${name}: sum and count must fit the buckets`)
  }
}
