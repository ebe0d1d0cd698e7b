import { choice, integer, type Kind, option, type ValuesOf } from './option.js'

/** Of a table in memory. */
const MOST_KEYS = 100_000_000
/** An estimate may be low. Without a bound whoever may take could close a key for long. */
export const DEFAULT_MAX_SETTLE = 10
const MAX_SETTLE = 1_000_000_000
const LIMIT_OF_KEYS = integer(1, MOST_KEYS)

/** What happens when a new key finds no room: see `onFull` of the library's `createLimiter`. */
export type OnFull = 'evict' | 'deny'

/** At least as many as `maxKeys`, the name of an option beside it. */
function growing(maxKeys: string): Kind<number> {
  return {
    schema: LIMIT_OF_KEYS.schema,
    read(section, name) {
      const least = section.written(maxKeys)
      const isGood = Number.isInteger(least) && (least as number) >= 1 && (least as number) <= MOST_KEYS
      return section.integer(name, isGood ? (least as number) : 1, MOST_KEYS)
    },
  }
}

/** The section `throttle`: room for the keys of `CL.THROTTLE`. */
export const THROTTLE = {
  maxKeys: option('max-keys', LIMIT_OF_KEYS, { what: 'Keys of `CL.THROTTLE` that always find room.', usual: 100_000, example: 10_000 }),
  growTo: option('grow-to', growing('max-keys'), {
    what: 'Keys that its table grows to. Default: 16 times `max-keys`.',
    example: 1_000_000,
  }),
}

/** Undefined: the library's defaults. */
export type ThrottleConfig = ValuesOf<typeof THROTTLE>

/** The table of a policy, in one of the two forms of files. */
function tableIn(named: (name: string) => string) {
  return {
    maxKeys: option(named('max-keys'), LIMIT_OF_KEYS, {
      what: 'Keys that always find room; fewer by default where they would need more than 1 GiB.',
      usual: 100_000,
      example: 1_000_000,
    }),
    growTo: option(named('grow-to'), growing(named('max-keys')), {
      what: `Keys that the table grows to when it is full of keys that cannot be evicted. Default: \`${named('max-keys')}\` if given, else 1,600,000, or as many as fit 256 MiB.`,
      example: 5_000_000,
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
