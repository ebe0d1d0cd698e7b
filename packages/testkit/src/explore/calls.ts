import type { Call, Verb } from './call.js'
import { type ExploredPolicy, PLAIN } from './explored-policy.js'

// Keys, and three moments. At EARLIER + 9 ms everything spent EARLIER has come back; LATER lies three tokens after NOW.
export const A = 0
export const B = 1
export const C = 2
export const D = 3
export const EARLIER = 1_000
export const NOW = 10_000
export const LATER = 13_000

/** Half the rate, two at once. */
export const STRICTER: ExploredPolicy = { ...PLAIN, unitsPerToken: 2000, burst: 2 }
/** Thrice the rate, four at once, in units of a third of a microsecond. */
export const LOOSER: ExploredPolicy = { ...PLAIN, unitsPerUs: 3, burst: 4 }
export const FORTNIGHT_US = 14 * 86_400e6

export const call = (verb: Verb, key: number, nowUs: number, amount: number): Call => ({ verb, key, nowUs, amount })
export const take = (key: number, nowUs = NOW, amount = 1): Call => call('take', key, nowUs, amount)
export const peek = (key: number, nowUs = NOW): Call => call('peek', key, nowUs, 0)
export const reset = (key: number, nowUs = NOW): Call => call('reset', key, nowUs, 0)
export const refund = (key: number, nowUs: number, amount = 1): Call => call('refund', key, nowUs, amount)
export const penalize = (key: number, nowUs: number, amount = 1): Call => call('penalize', key, nowUs, amount)
export const takeBoth = (key: number, other: number, nowUs = NOW, amount = 1): Call => ({ ...call('takeBoth', key, nowUs, amount), other })
/** A take up to 50 ms ahead. */
export const reserve = (key: number, nowUs: number, amount = 1): Call => ({ ...call('reserve', key, nowUs, amount), bound: 50_000 })
export const cancel = (key: number, nowUs: number, bound: number, amount = 1): Call => ({ ...call('cancel', key, nowUs, amount), bound })
/** Of the permit that the thread was given last. */
export const release = (key: number, nowUs: number): Call => call('release', key, nowUs, 1)
export const heartbeat = (key: number, nowUs: number): Call => call('heartbeat', key, nowUs, 1)
/** The same about one of the permits that were given before the start. */
export const about = (permit: Call, nth: number, untilUs: number): Call => ({ ...permit, nth, bound: untilUs })
export const block = (key: number, us: number): Call => call('block', key, NOW, us)
export const update = (policy: ExploredPolicy, nowUs = NOW): Call => ({ verb: 'update', key: A, nowUs, amount: 0, policy })
