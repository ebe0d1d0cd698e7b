import { type Arrival, MOST_ARRIVALS } from './arrivals.js'

/** `10/Oct/2025:13:55:36 +0000` of the common log format, or a date of ISO 8601. */
const COMMON = /\[(\d{2})\/(\w{3})\/(\d{4}):(\d{2}:\d{2}:\d{2}) ([+-]\d{2})(\d{2})\]/
const ISO = /\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?/
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** A longer text is cut at a line: the page stays quick. */
export const MOST_CHARACTERS = 4_000_000

export interface ReadLog {
  readonly arrivals: readonly Arrival[]
  /** Lines without a time. */
  readonly skipped: number
  /** Whether requests are missing: the text, or the number of its requests, is above what the page decides. */
  readonly isCut: boolean
  /** From the first to the last, at least a second. */
  readonly seconds: number
}

/** The requests of an access log: their times from the first on, and the first word of each line, the client, as their key. */
export function readLog(text: string): ReadLog {
  const whole = text.length <= MOST_CHARACTERS
  const kept = whole ? text : text.slice(0, text.lastIndexOf('\n', MOST_CHARACTERS) + 1)
  const lines = kept.split('\n').filter((line) => line.trim() !== '')
  const dated = lines.flatMap((line) => {
    const ms = timeIn(line)
    return Number.isNaN(ms) ? [] : [{ ms, key: keyIn(line) }]
  })
  dated.sort((a, b) => a.ms - b.ms)
  const used = dated.slice(0, MOST_ARRIVALS)
  const firstMs = used[0]?.ms ?? 0
  const arrivals = used.map(({ ms, key }) => ({ atMs: ms - firstMs, key }))
  const lastMs = arrivals.at(-1)?.atMs ?? 0
  const isCut = !whole || used.length < dated.length
  return { arrivals, isCut, skipped: lines.length - dated.length, seconds: Math.max(1, Math.ceil((lastMs + 1) / 1000)) }
}

function timeIn(line: string): number {
  const common = COMMON.exec(line)
  if (common !== null) {
    const [, day, month = '', year, time, hours, minutes] = common
    const number = String(MONTHS.indexOf(month) + 1).padStart(2, '0')
    return Date.parse(`${year}-${number}-${day}T${time}${hours}:${minutes}`)
  }
  return Date.parse(ISO.exec(line)?.[0] ?? '')
}

function keyIn(line: string): string {
  return /"(?:remote_addr|client_ip|remote_ip|ip)":\s*"([^"]+)"/.exec(line)?.[1] ?? line.trim().split(/\s+/)[0] ?? 'you'
}
