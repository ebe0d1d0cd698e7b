const MONTHS: Readonly<Record<string, number>> = {
  Jan: 0,
  Feb: 1,
  Mar: 2,
  Apr: 3,
  May: 4,
  Jun: 5,
  Jul: 6,
  Aug: 7,
  Sep: 8,
  Oct: 9,
  Nov: 10,
  Dec: 11,
}
/** The zone is optional: HAProxy writes none. */
const COMMON_TIME =
  /^\[?(\d{2})\/([A-Z][a-z]{2})\/(\d{4})[: ](\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9}))?(?: ?([+-])(\d{2}):?(\d{2})| ?(?:Z|UTC|GMT))?\]?$/
const UNIX = /^\d{9,20}(?:\.\d+)?$/
const ISO = /^\d{4}([-/])\d{2}\1\d{2}[T ]\d{2}:\d{2}/
/** RFC 9110, section 5.6.7. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

/** No clock of a limiter goes further, in milliseconds. */
const FURTHEST_MS = 9e12

/** Unix milliseconds of a text in any form that access logs use, up to the year 2255; NaN for any other. */
export function timeOf(text: string): number {
  return withinClock(anyTimeOf(text))
}

/** One line with a time out of reach is to end no reading of a log. */
function withinClock(timeMs: number): number {
  return Math.abs(timeMs) <= FURTHEST_MS ? timeMs : Number.NaN
}

function anyTimeOf(text: string): number {
  const common = COMMON_TIME.exec(text)
  if (common !== null) {
    const [, day, month, year, hour, minute, second, fraction = '', sign, zoneHours = 0, zoneMinutes = 0] = common
    const monthIndex = MONTHS[month as string]
    if (monthIndex === undefined) return Number.NaN
    const zoneMs = (Number(zoneHours) * 60 + Number(zoneMinutes)) * 60_000
    const localMs = Date.UTC(Number(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second))
    return localMs + Number(`0.${fraction}0`) * 1_000 - (sign === '-' ? -zoneMs : zoneMs)
  }
  if (UNIX.test(text)) return anyUnixMs(Number(text))
  if (HTTP_DATE.test(text)) return Date.parse(text)
  return ISO.test(text) ? isoTime(text) : Number.NaN
}

/** A number of seconds, milliseconds, microseconds or nanoseconds, from 1973 to 2255; NaN for any other. */
export function unixMs(time: number): number {
  return withinClock(anyUnixMs(time))
}

function anyUnixMs(time: number): number {
  if (time >= 1e8 && time < 1e11) return time * 1_000
  if (time < 1e14) return time >= 1e11 ? time : Number.NaN
  return time < 1e17 ? time / 1e3 : time < 1e20 ? time / 1e6 : Number.NaN
}

/** Without a zone, UTC: a log says nothing of the machine that replays it. */
function isoTime(text: string): number {
  const date = text.slice(0, 10).replaceAll('/', '-')
  const time = text
    .slice(11)
    .replace(',', '.')
    .replace(/ ?(?:UTC|GMT|Z)$/, 'Z')
    .replace(/ (?=[+-]\d)/, '')
  return Date.parse(`${date}T${time}${/(?:Z|[+-]\d{2}:?\d{2})$/.test(time) ? '' : 'Z'}`)
}

/**
 * Times read from bytes. The times of neighbouring lines are mostly equal, so that the last one is kept with its bytes; a time that
 * differs from it is parsed as a text.
 */
export class TimeReader {
  readonly #last = new Uint8Array(64)
  #length = -1
  #ms = Number.NaN

  /** Unix milliseconds; NaN for a text that is no time. */
  read(bytes: Uint8Array, start: number, end: number): number {
    const length = end - start
    if (length === this.#length) {
      const last = this.#last
      let i = length - 1
      while (i >= 0 && bytes[start + i] === last[i]) i--
      if (i < 0) return this.#ms
    }
    if (length > this.#last.length) return Number.NaN
    for (let i = 0; i < length; i++) this.#last[i] = bytes[start + i] as number
    this.#length = length
    this.#ms = timeOf(String.fromCharCode(...this.#last.subarray(0, length)))
    return this.#ms
  }
}
