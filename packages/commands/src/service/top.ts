import type { IncomingMessage } from 'node:http'
import { printable, printableJson, UsageError } from '../terminal/usage-error.js'
import { ServiceClient } from './service-client.js'

/** Options of `sluicegate top`. */
export interface TopOptions {
  readonly url: string
  readonly token: string | undefined
  /** Samples until it ends; undefined: until it is interrupted. */
  readonly samples: number | undefined
  /** How long the service may be silent; it sends a sample each second. */
  readonly timeoutMs: number
  readonly json: boolean
}

/** What `top` draws of a sample that the service sends each second to its page. */
export interface DrawnSample {
  /** Unix time in seconds. */
  readonly atS: number
  readonly policies: readonly DrawnPolicy[]
}

interface DrawnPolicy {
  readonly name: string
  readonly allowed: DrawnFlow
  readonly denied: DrawnFlow
  readonly impossible: DrawnFlow
  readonly keysTracked: number
  readonly demand: readonly DrawnKey[]
  readonly denials: readonly DrawnKey[]
}

interface DrawnFlow {
  readonly perSecond: number
}

interface DrawnKey {
  readonly key: string
  readonly count: number
}

/** Where `top` draws. */
export interface Screen {
  readonly isTTY?: boolean
  readonly columns?: number
  readonly rows?: number
  write(text: string): unknown
}

/** A sample of a thousand policies is below it. */
const MAX_EVENT_CHARACTERS = 16_777_216
const CLEAR = '\x1b[H\x1b[J'
const KEYS = 5

/** Draws the decisions of a running service each second, until it is interrupted. */
export async function top({ url, token, samples = Number.POSITIVE_INFINITY, timeoutMs, json }: TopOptions, screen: Screen): Promise<void> {
  const { response, renew } = await new ServiceClient(url, token, timeoutMs).open('/events')
  if (response.statusCode !== 200) {
    response.destroy()
    throw new UsageError(
      response.statusCode === 404 ? 'the service serves no page (dashboard: { keys: off })' : `the service answered ${response.statusCode}`,
      1,
    )
  }
  let drawn = 0
  for await (const sample of samplesOf(response)) {
    renew()
    if (json) screen.write(`${printableJson(sample)}\n`)
    else screen.write((screen.isTTY ? CLEAR : '') + drawing(sample, url, screen))
    if (++drawn >= samples) break
  }
  response.destroy()
  if (drawn < samples && samples !== Number.POSITIVE_INFINITY) throw new UsageError('the service ended the connection', 1)
}

/** The samples in a stream of server-sent events; the history at its beginning is for charts. */
async function* samplesOf(response: IncomingMessage): AsyncGenerator<DrawnSample> {
  response.setEncoding('utf8')
  let text = ''
  for await (const chunk of response) {
    text += chunk
    if (text.length > MAX_EVENT_CHARACTERS) throw new UsageError('this is no Sluicegate service: its events do not end', 1)
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const event = text.slice(0, end)
      text = text.slice(end + 2)
      if (!event.startsWith('data: ')) continue
      yield sampleIn(event.slice('data: '.length))
    }
  }
}

function sampleIn(data: string): DrawnSample {
  try {
    return JSON.parse(data) as DrawnSample
  } catch {
    throw new UsageError('this is no Sluicegate service: its events are not JSON', 1)
  }
}

/** A sample as text that fits the screen. */
export function drawing(sample: DrawnSample, url: string, { columns = 100, rows = 40 }: Screen): string {
  const policies = [...sample.policies].sort((a, b) => rateOf(b) - rateOf(a))
  const width = Math.max(6, ...policies.map(({ name }) => Math.min(name.length, 40)))
  const head = `${'policy'.padEnd(width)}  ${['allowed/s', 'denied/s', 'impossible/s', 'keys'].map((title) => title.padStart(14)).join('')}`
  const lines = policies.map((policy) => {
    const { allowed, denied, impossible } = policy
    const figures = [allowed.perSecond, denied.perSecond, impossible.perSecond].map((each) => each.toFixed(1))
    return `${policy.name.slice(0, 40).padEnd(width)}  ${[...figures, String(policy.keysTracked)].map((figure) => figure.padStart(14)).join('')}`
  })
  const text = [
    `Sluicegate ${url}  ${new Date(sample.atS * 1000).toISOString()}`,
    '',
    head,
    ...lines.slice(0, Math.max(1, rows - 2 * KEYS - 9)),
    '',
    'most demand',
    ...ranked(policies, ({ demand }) => demand),
    '',
    'most denials',
    ...ranked(policies, ({ denials }) => denials),
  ]
  return `${text.map((line) => printable(line).slice(0, columns)).join('\n')}\n`
}

function rateOf({ allowed, denied, impossible }: DrawnPolicy): number {
  return allowed.perSecond + denied.perSecond + impossible.perSecond
}

function ranked(policies: readonly DrawnPolicy[], listOf: (policy: DrawnPolicy) => readonly DrawnKey[]): string[] {
  const keys = policies.flatMap((policy) => listOf(policy).map(({ key, count }) => ({ key, count, policy: policy.name })))
  const first = keys.sort((a, b) => b.count - a.count).slice(0, KEYS)
  return first.length === 0 ? ['  none'] : first.map(({ key, count, policy }) => `  ${String(count).padStart(10)}  ${key}  (${policy})`)
}
