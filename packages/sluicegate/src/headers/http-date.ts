const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const LONGEST = 40

// Each pattern has a fixed order of bounded parts: no backtracking.
const IMF = /^[A-Z][a-z]{2}, (\d{2}) ([A-Z][a-z]{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/
const RFC_850 = /^[A-Z][a-z]{5,8}, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/
const ASCTIME = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/
const RFC_3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2}):(\d{2})(\.\d{1,9})?(?:[Zz]|([+-]\d{2}):(\d{2}))$/
const ECMASCRIPT = /^[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{2}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT([+-]\d{2})(\d{2})(?: \([^()]{1,60}\))?$/

/**
 * Unix time in milliseconds of an HTTP date, in any of its three forms; undefined for other text.
 *
 * Source: RFC 9110, section 5.6.7.
 *
 * @param nowMs determines the century of a year with two digits.
 */
export function httpDateMs(text: string, nowMs: number): number | undefined {
  if (text.length > LONGEST) return undefined
  const imf = IMF.exec(text)
  if (imf !== null) return momentMs(imf[3], imf[2], imf[1], imf.slice(4))
  const rfc850 = RFC_850.exec(text)
  if (rfc850 !== null) return momentMs(String(fullYear(Number(rfc850[3]), nowMs)), rfc850[2], rfc850[1], rfc850.slice(4))
  const asctime = ASCTIME.exec(text)
  return asctime === null ? undefined : momentMs(asctime[6], asctime[1], asctime[2], asctime.slice(3, 6))
}

/**
 * Unix time in milliseconds, fractions of a second included, of a date as RFC 3339 or `String(new Date())` writes it.
 *
 * Source: RFC 3339, section 5.6; ECMA-262, Date.prototype.toString.
 */
export function offsetDateMs(text: string): number | undefined {
  const iso = RFC_3339.exec(text)
  if (iso !== null) {
    const ms = momentMs(iso[1], MONTHS[Number(iso[2]) - 1], iso[3], iso.slice(4, 7))
    return inUtc(ms, iso[8], iso[9], Number(iso[7] ?? 0) * 1000)
  }
  const own = ECMASCRIPT.exec(text)
  return own === null ? undefined : inUtc(momentMs(own[3], own[1], own[2], own.slice(4, 7)), own[7], own[8])
}

function inUtc(localMs: number | undefined, hours = '+00', minutes = '00', fractionMs = 0): number | undefined {
  if (localMs === undefined || Math.abs(Number(hours)) > 23 || Number(minutes) > 59) return undefined
  const offset = Number(`${hours[0]}1`) * (Math.abs(Number(hours)) * 60 + Number(minutes))
  return localMs + fractionMs - offset * 60_000
}

function momentMs(year = '', month = '', day = '', time: readonly string[] = []): number | undefined {
  const [hours, minutes, seconds] = time.map(Number) as [number, number, number]
  const monthIndex = MONTHS.indexOf(month)
  // A leap second becomes the last second of the day.
  if (monthIndex < 0 || hours > 23 || minutes > 59 || seconds > 60) return undefined
  const ms = Date.UTC(Number(year), monthIndex, Number(day), hours, minutes, Math.min(seconds, 59))
  return new Date(ms).getUTCDate() === Number(day) && Number(year) >= 100 ? ms : undefined
}

/** The nearest century, at most fifty years ahead. Source: RFC 9110, section 5.6.7. */
function fullYear(twoDigits: number, nowMs: number): number {
  const now = new Date(nowMs).getUTCFullYear()
  const year = now - (now % 100) + twoDigits
  return year > now + 50 ? year - 100 : year
}
