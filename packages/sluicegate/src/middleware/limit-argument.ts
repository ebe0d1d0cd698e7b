import { PolicyError } from '../errors.js'
import { asGiven, checkOptionNames as checkNames, has, isRequest } from '../options/option-checks.js'
import { besideFields, isMade, notOfPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { isStore } from '../shared/store.js'
import type { LimitingOptions, MiddlewareLimiter, MiddlewareOptions } from './middleware-options.js'

/** The first argument of middleware: a policy, a limiter, or options with one of them. */
export type LimitArgument<Request> = Policy | MiddlewareLimiter | (LimitingOptions<Request> & NothingElse<Request>)

/** Fields of policies and limiters are not options: without this the compiler would allow them beside options. */
type NothingElse<Request> = {
  readonly [Name in Exclude<keyof (Policy & MiddlewareLimiter) & string, keyof MiddlewareOptions<Request>>]?: undefined
}

/** The options that determine how much passes. A route takes over all others from the app. */
const AMOUNT_OPTIONS = ['policy', 'limiter', 'limits', 'cost', 'unit', 'slowDown'] as const

/**
 * The options that an argument stands for, see `asGiven`.
 *
 * @param takenBy the function that takes it, for messages.
 * @param second the argument behind it, which is refused if it is an object: its options would be ignored.
 * @throws {PolicyError} `OPTION_INVALID` for an argument of another kind, and for options behind it; `OPTION_UNKNOWN` for options beside the
 *   fields of a policy
 */
export function optionsOf<Request>(
  argument: LimitArgument<Request> | MiddlewareOptions<Request>,
  takenBy?: string,
  second?: unknown,
): MiddlewareOptions<Request> {
  return asGiven(namedOptions(argument, takenBy, second), ALL_OPTIONS)
}

function namedOptions<Request>(
  argument: LimitArgument<Request> | MiddlewareOptions<Request>,
  takenBy = 'rateLimit',
  second?: unknown,
): MiddlewareOptions<Request> {
  if (typeof argument !== 'object' || argument === null) {
    const called = typeof argument === 'function' ? `. A function of the request belongs into ${takenBy}({ policy: (request) => ... })` : ''
    const mend = `must be a policy such as tokenBucket({...}), a limiter, or options with one${called}`
    throw new PolicyError('OPTION_INVALID', 'options', argument, mend)
  }
  const mistaken = mistakenFor(argument, takenBy)
  if (mistaken !== undefined) throw new PolicyError('OPTION_INVALID', 'options', argument, mistaken)
  // `policies.map(rateLimit)` passes a number and an array.
  if (typeof second === 'object' && second !== null && !Array.isArray(second)) throw notBehind(argument, second, takenBy)
  if (has(argument, 'take')) return { limiter: argument as MiddlewareLimiter }
  if (!has(argument, 'algorithm')) return argument as MiddlewareOptions<Request>
  const beside = besideFields(argument)
  if (beside.length > 0 && isMade(argument))
    throw notOfPolicy(argument, beside, `${takenBy}({ policy: tokenBucket({...}), ${beside.join(', ')} })`)
  return { policy: argument as Policy }
}

function notBehind(argument: object, second: object, takenBy: string): PolicyError {
  const first = has(argument, 'take') ? 'limiter' : 'policy'
  const names = isStore(second) ? ['store'] : Object.keys(second)
  const mend = `must be one object with all options: say ${takenBy}({ ${[first, ...names].join(', ')} })`
  return new PolicyError('OPTION_INVALID', 'options', second, mend)
}

/** What to do about an argument that was passed by mistake; a framework passes its app or a request if it was given `rateLimit` uncalled. */
function mistakenFor(argument: object, takenBy: string): string | undefined {
  if (has(argument, 'addHook') && has(argument, 'register'))
    return `must be a policy, and not the app: write app.register(${takenBy}(policy)) instead of app.register(${takenBy})`
  if (has(argument, 'then')) return 'must not be a promise: await it'
  if (isStore(argument)) return `is a store alone: say ${takenBy}({ policy, store })`
  if (Array.isArray(argument))
    return `is an array: for several limits say ${takenBy}({ limits: [{ policy, key }, ...] }), or allOf([...]) on one key`
  if (has(argument, 'policy') || !isRequest(argument)) return undefined
  return `must be a policy, and not a request: write app.use(${takenBy}(policy)) instead of app.use(${takenBy})`
}

/** What frameworks give their middleware and plugins, by members; the first that fits. */
const GIVEN_BY: Readonly<Record<string, (given: Given) => boolean>> = {
  fastify: (given) => has(given, 'addHook'),
  hono: ({ req }) => req?.raw !== undefined,
  koa: (given) => has(given, 'req') && has(given, 'res'),
  express: (given) => has(given, 'originalUrl'),
  fetch: (given) => has(given, 'clone') && has(given, 'headers'),
}

interface Given {
  readonly req?: { readonly raw?: unknown }
}

/** The error for middleware that another framework calls. @param entry the entry point that it is of, such as `koa`. */
export function notCalledBy(entry: string, given: object): PolicyError {
  const caller = Object.keys(GIVEN_BY).find((name) => GIVEN_BY[name]?.(given))
  const instead = caller === undefined ? 'take that of your framework' : `import { rateLimit } from 'sluicegate/${caller}'`
  return new PolicyError(
    'OPTION_INVALID',
    'rateLimit',
    given,
    `is that of 'sluicegate/${entry}', and another framework calls it: ${instead}`,
  )
}

/** The options of a limit of a route's own. @throws {PolicyError} where they have no limit, or unknown names */
export function ownOptions<Request>(argument: LimitArgument<Request>, takenBy?: string, second?: unknown): MiddlewareOptions<Request> {
  const options = namedOptions(argument, takenBy, second)
  const { policy, limiter, limits } = checkOptionNames(options, takenBy)
  if (policy === undefined && limiter === undefined && limits === undefined) {
    const mend = 'or limiter must be given: a route takes over how other limits count and answer, and not how much they let through'
    throw new PolicyError('OPTION_INVALID', 'policy', policy, mend)
  }
  return options
}

/** The options of one route: its own, and those of the app that it does not set. @throws {PolicyError} where it has no limit */
export function routeOptions<Request>(all: MiddlewareOptions<Request>, argument: LimitArgument<Request>): MiddlewareOptions<Request> {
  const shared: Record<string, unknown> = { ...all }
  for (const option of AMOUNT_OPTIONS) delete shared[option]
  const own = ownOptions(argument)
  // A limiter has its own store, and `undefined` is none given.
  const { limiter, store = limiter === undefined ? all.store : undefined } = own
  return { ...shared, ...own, store }
}

/**
 * Whether options have a limit; those of an app may have none, for routes to take over.
 *
 * @throws {PolicyError} `OPTION_UNKNOWN`: with a misspelt policy there would be no limit at all
 */
export function namesLimit<Request>(options: MiddlewareOptions<Request>, takenBy?: string): boolean {
  checkOptionNames(options, takenBy)
  return AMOUNT_OPTIONS.some((option) => Object.hasOwn(options, option) && (options[option] !== undefined || !(option in Object.prototype)))
}

/** The options of one limit. */
export const LIMIT_OPTIONS: readonly string[] = ['policy', 'limiter', 'key', 'onMissingKey', 'cost', 'shadow', 'unit', 'slowDown', 'store']
const OTHER_OPTIONS: readonly string[] = ['limits', 'skip', 'counts', 'headers', 'body', 'status', 'onDenied', 'onOutage']
const ALL_OPTIONS: readonly string[] = [...LIMIT_OPTIONS, ...OTHER_OPTIONS]

/** For messages. */
export const EXAMPLE = '{ policy: tokenBucket({ limit: 100, window: "1m" }) }'

/**
 * @param takenBy the function that takes the options, for the message.
 * @returns the options to read, see `asGiven`.
 * @throws {PolicyError} `OPTION_UNKNOWN`
 */
export function checkOptionNames<Options extends object>(options: Options, takenBy = 'rateLimit'): Options {
  return withLimits(checkNames(options, ALL_OPTIONS, `${takenBy}()`))
}

/** Each of `limits` as given, too. */
function withLimits<Options extends { readonly limits?: unknown }>(options: Options): Options {
  const { limits } = options
  if (!Array.isArray(limits)) return options
  const given = limits.map((limit) => (typeof limit === 'object' && limit !== null ? asGiven(limit, LIMIT_OPTIONS) : limit))
  return given.every((limit, i) => limit === limits[i]) ? options : { ...options, limits: given }
}

/** The same for one of `limits`. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkLimitNames<Options extends object>(limit: Options): Options {
  if (typeof limit !== 'object' || limit === null) {
    throw new PolicyError('OPTION_INVALID', 'limits', limit, `must be an object such as ${EXAMPLE}`)
  }
  return checkNames(limit, LIMIT_OPTIONS, 'each of limits')
}
