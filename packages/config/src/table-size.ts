import { choice, integer, option, type ValuesOf } from './option.js'

/** Of a table in memory. */
const MOST_KEYS = 100_000_000
/** An estimate may be low. Without a bound whoever may take could close a key for long. */
export const DEFAULT_MAX_SETTLE = 10
const MAX_SETTLE = 1_000_000_000
const LIMIT_OF_KEYS = integer(1, MOST_KEYS)

/** What happens when a new key finds no room: see `onFull` of the library's `createLimiter`. */
export type OnFull = 'evict' | 'deny'

/** The section `throttle`: room for the keys of `CL.THROTTLE`. */
export const THROTTLE = {
  maxKeys: option('max-keys', LIMIT_OF_KEYS, {
    what: 'Keys of `CL.THROTTLE` that always find room, in a table of that size. The default one grows to 1,600,000 keys.',
    usual: 100_000,
    example: 10_000,
  }),
}

/** Undefined: the library's defaults. */
export type ThrottleConfig = ValuesOf<typeof THROTTLE>

/** The table of a policy, in one of the two forms of files. */
function tableIn(named: (name: string) => string) {
  return {
    maxKeys: option(named('max-keys'), LIMIT_OF_KEYS, {
      what: 'Keys that always find room, in a table of that size. The default one, smaller where it would take more than 1 GiB, grows to 1,600,000 keys, or as many as fit 256 MiB.',
      usual: 100_000,
      example: 1_000_000,
    }),
    onFull: option(named('on-full'), choice<OnFull>(['evict', 'deny']), {
      what: 'A new key without room: `evict` evicts the key with the least debt, `deny` denies the new one. A key that is being denied stays.',
      standard: 'evict',
      example: 'deny',
    }),
    maxSettle: option(named('max-settle'), integer(1, MAX_SETTLE), {
      what: 'The highest cost that settles a reservation, in multiples of what was reserved; more is charged as that.',
      usual: DEFAULT_MAX_SETTLE,
      example: 1_000,
    }),
  }
}

export const TABLE = tableIn((name) => name)
export const ENVOY_TABLE = tableIn((name) => name.replaceAll('-', '_'))
