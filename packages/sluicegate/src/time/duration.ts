import { PolicyError, type PolicyErrorCode } from '../errors.js'

/** Milliseconds as a number, or a number with a unit: `250`, `'250ms'`, `'10s'`, `'1m'`, `'24h'`, `'30d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

export const DAY_MS = 86_400_000
const MS_PER_UNIT: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: DAY_MS }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/**
 * A duration in milliseconds, finite and >= 0.
 *
 * @param also what the message is to say besides.
 * @throws {PolicyError} with `code` (default `DURATION_INVALID`) naming `option`.
 */
export function toMs(duration: Duration, option: string, code: PolicyErrorCode = 'DURATION_INVALID', also = ''): number {
  const ms = typeof duration === 'string' ? parse(duration) : duration
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) {
    const mend = `must be milliseconds >= 0 or a string such as '250ms', '10s', '1m', '24h', '30d'${also}`
    throw new PolicyError(code, option, duration, mend)
  }
  return ms
}

/**
 * A duration in milliseconds, both bounds included; `Infinity` where nothing is too long.
 *
 * @throws {PolicyError} `DURATION_INVALID` naming `option`.
 */
export function checkedMs(option: string, duration: Duration, leastMs: number, mostMs = Number.POSITIVE_INFINITY): number {
  if (duration === Number.POSITIVE_INFINITY && duration === mostMs) return duration
  const ms = toMs(duration, option)
  if (ms >= leastMs && ms <= mostMs) return ms
  const range = mostMs === Number.POSITIVE_INFINITY ? `at least ${formatMs(leastMs)}` : `from ${formatMs(leastMs)} to ${formatMs(mostMs)}`
  throw new PolicyError('DURATION_INVALID', option, duration, `must be ${range}`)
}

/** The shortest exact way to write `ms`: 60000 is `1m`, 1500 is `1500ms`. */
export function formatMs(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = MS_PER_UNIT[unit] as number
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`
  }
  return `${ms}ms`
}

function parse(text: string): number {
  const [, digits, unit] = FORM.exec(text) ?? []
  if (digits === undefined || unit === undefined) return Number.NaN
  // 0.3 h must be 1080000 ms to the last bit: scale the decimal digits as integers, then divide once.
  const [whole = '', fraction = ''] = digits.split('.')
  return (Number(whole + fraction) * (MS_PER_UNIT[unit] as number)) / 10 ** fraction.length
}
