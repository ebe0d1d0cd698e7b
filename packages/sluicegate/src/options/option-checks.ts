import { PolicyError } from '../errors.js'

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
    if (!known.includes(option)) throw unknownOption({ option, value: (options as Record<string, unknown>)[option], known, of })
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

/** Longer names than any option has are not compared. */
const LONGEST = 40
/** The number of wrong letters in a name that is still recognised. */
const MOST_WRONG = 2

/** An option that does not exist. */
export interface UnknownOption {
  readonly option: string
  readonly value: unknown
  readonly known: readonly string[]
  /** The function or object that takes the options, such as `tokenBucket()`. */
  readonly of?: string | undefined
  /** What to write instead, if known. */
  readonly mend?: string | undefined
}

/** Options of shared limiters, of their stores and of queues are easily given to another one: where they belong. */
const OWNERS: readonly (readonly [options: readonly string[], owner: string])[] = [
  [['mode', 'lease', 'outage', 'share', 'timeout'], 'createLimiter(policy, { store, $ })'],
  [['store'], 'createLimiter(policy, { $ })'],
  [['concurrency', 'maxWait', 'maxWaitingPerKey', 'overflow'], 'createQueue(limiter, { $ })'],
  [['prefix', 'hashTag'], 'redis(client, { $ })'],
  [['table'], 'postgres(pool, { $ })'],
  [['client'], 'a store, such as redis($)'],
]

/** Earlier names of options. */
const RENAMED: Readonly<Record<string, string>> = {
  maxWaiters: 'maxWaiting',
  maxQueued: 'maxWaiting',
  maxQueuedPerKey: 'maxWaitingPerKey',
  growTo: 'maxKeys',
  horizonMs: 'lease',
  localShare: 'share',
  plans: 'policyFor',
}
/** What these set chooses itself now. */
const AUTOMATIC = ['newcomers', 'slotBytes', 'counters', 'freeShare', 'recoverMs', 'random', 'maxDelayedPerKey', 'longestPause']

/** What to write in place of others. */
const INSTEAD: Readonly<Record<string, string>> = {
  queue: 'make one with these bounds: createQueue(limiter, { concurrency: 2 })',
  paused: 'call pause() of the queue',
  limiter: 'give it in place of the policy',
}

/** The error for an unknown option, with what to write instead where that is known: it belongs elsewhere, has another name, or a similar one. */
export function unknownOption({ option, value, known, of, mend = hintFor(option, known) }: UnknownOption): PolicyError {
  const name = option.slice(option.lastIndexOf('.') + 1)
  const meant = mend === undefined ? nearest(name, known) : undefined
  const guess = mend ?? (meant === undefined ? undefined : `did you mean ${meant}?`)
  const list = `is not one of ${known.join(', ')}${of === undefined ? '' : `, which are the options of ${of}`}`
  return new PolicyError('OPTION_UNKNOWN', option, value, guess === undefined ? list : `${list}: ${guess}`)
}

function hintFor(option: string, known: readonly string[]): string | undefined {
  const name = Object.hasOwn(RENAMED, option) ? (RENAMED[option] as string) : option
  if (name !== option && known.includes(name)) return `did you mean ${name}?`
  const owner = OWNERS.find(([names]) => names.includes(name))?.[1]
  if (owner !== undefined) return `give it to ${owner.replace('$', name)}`
  if (Object.hasOwn(INSTEAD, option)) return INSTEAD[option]
  return AUTOMATIC.includes(option) ? 'leave it out, it is automatic' : undefined
}

/** The most similar of several names, with at most two differing letters, and fewer than half of them; undefined if there is none. */
function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined
  const own = name.toLowerCase()
  const ranked = known.map((each) => ({ each, wrong: distance(own, each.toLowerCase()) })).sort((a, b) => a.wrong - b.wrong)
  const [best] = ranked
  return best !== undefined && best.wrong <= Math.min(MOST_WRONG, name.length / 2) ? best.each : undefined
}

/** The number of letters added, dropped, changed, or swapped with their neighbour. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1]
      const least = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + (same ? 0 : 1))
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(isSwap ? Math.min(least, (before[j - 2] as number) + 1) : least)
    }
    before = last
    last = row
  }
  return last[b.length] as number
}
