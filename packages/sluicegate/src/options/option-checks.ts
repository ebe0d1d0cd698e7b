import { PolicyError } from '../errors.js'
import { unknownOption } from './unknown-option.js'

// The checks of options in all of the library. Each throws a `PolicyError` with the option and its value, or returns nothing.

/**
 * Options have to be an object without unknown names.
 *
 * @returns the options as {@link asGiven} says: what is read has to be read from these.
 * @param example for the message where no object was given: `{ limit: 100, window: '1s' }`.
 * @param of what takes the options, for the message: `tokenBucket()`.
 * @param name the option that has these options, such as `slowDown`.
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 */
export function checkOptions<Options>(options: Options, known: readonly string[], example: string, of?: string, name = 'options'): Options {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new PolicyError('OPTION_INVALID', name, options, `must be an object such as ${example}`)
  }
  return checkOptionNames(options, known, of)
}

/** The names alone. @returns the options as {@link asGiven} says. @throws {PolicyError} `OPTION_UNKNOWN` */
export function checkOptionNames<Options extends object>(options: Options, known: readonly string[], of?: string): Options {
  for (const option of Object.keys(options)) {
    if (!known.includes(option)) throw unknownOption({ option, options, known, of })
  }
  return asGiven(options, known)
}

/**
 * The options without what they inherit from `Object.prototype`: a fault of another module may let a client write there, and one such write
 * would put all limits into shadow mode, or their keys on a list. What options inherit from anything else, such as a class, is theirs.
 *
 * @returns the same object where nothing of the kind is inherited, otherwise a copy in which these names are undefined.
 */
export function asGiven<Options extends object>(options: Options, known: readonly string[]): Options {
  const polluted = known.filter((name) => name in Object.prototype && !has(options, name))
  if (polluted.length === 0) return options
  const copy: object = Object.create(Object.getPrototypeOf(options), Object.getOwnPropertyDescriptors(options))
  // Properties of the copy itself, so that a copy of it by spreading has them, too.
  for (const name of polluted) Object.defineProperty(copy, name, { value: undefined, configurable: true, enumerable: true, writable: true })
  return copy as Options
}

/** `name in value`, apart from what all objects inherit. */
export function has(value: object, name: string): boolean {
  for (let holder: object | null = value; holder !== null && holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
    if (Object.hasOwn(holder, name)) return true
  }
  return false
}

/** A request, or a context with one, of a framework: what it gives a function that was passed without being called. */
export function isRequest(value: object): boolean {
  return (has(value, 'headers') && has(value, 'method')) || (has(value, 'req') && has(value, 'res'))
}

/** A function, or undefined. @throws {PolicyError} `OPTION_INVALID` */
export function checkFunction(option: string, value: unknown, mend = 'must be a function'): void {
  if (value !== undefined && typeof value !== 'function') throw new PolicyError('OPTION_INVALID', option, value, mend)
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkBoolean(option: string, value: unknown): asserts value is boolean {
  if (typeof value !== 'boolean') throw new PolicyError('OPTION_INVALID', option, value, 'must be true or false')
}

/** One of some words, or undefined. @throws {PolicyError} `OPTION_INVALID` */
export function checkOneOf(option: string, value: unknown, known: readonly unknown[]): void {
  if (value === undefined || known.includes(value)) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be one of ${known.map((word) => `'${word}'`).join(', ')}`)
}

/** An integer, both bounds included. @throws {PolicyError} `OPTION_INVALID` */
export function checkInteger(option: string, value: unknown, least: number, most = Number.MAX_SAFE_INTEGER): asserts value is number {
  if (isInteger(value, least, most)) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be an integer ${rangeText(least, most)}`)
}

/** Both bounds included. */
export function isInteger(value: unknown, least: number, most = Number.POSITIVE_INFINITY): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most
}

/** A number, both bounds included; never NaN. @throws {PolicyError} `OPTION_INVALID` */
export function checkNumber(option: string, value: unknown, least: number, most = Number.POSITIVE_INFINITY): asserts value is number {
  if (typeof value === 'number' && value >= least && value <= most) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be a number ${rangeText(least, most)}`)
}

/** An `AbortSignal`, or undefined. @throws {PolicyError} `OPTION_INVALID` */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal === undefined || (typeof signal?.aborted === 'boolean' && typeof signal.addEventListener === 'function')) return
  throw new PolicyError('OPTION_INVALID', 'signal', signal, 'must be an AbortSignal')
}

/** A limiter, recognised by `take`. @throws {PolicyError} `OPTION_INVALID` */
export function checkLimiter(option: string, value: unknown, example = 'createLimiter(policy)'): void {
  if (typeof (value as { take?: unknown } | null | undefined)?.take === 'function') return
  throw new PolicyError('OPTION_INVALID', option, value, `must be a limiter such as ${example}`)
}

function rangeText(least: number, most: number): string {
  if (least === Number.MIN_VALUE) return `above 0 to ${most}`
  return most === Number.MAX_SAFE_INTEGER || most === Number.POSITIVE_INFINITY ? `>= ${least}` : `from ${least} to ${most}`
}
