import { PolicyError } from '../errors.js'
import { besideFields, notOfPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import type { EdgeLimiter } from './middleware-limiter.js'
import type { GatekeeperOptions, LimitingOptions } from './middleware-options.js'
import { checkOptionNames } from './option-names.js'

/** What middleware is told first: a policy, a limiter, or options with one of them. */
export type LimitArgument<Request> = Policy | EdgeLimiter | (LimitingOptions<Request> & NothingElse<Request>)

/** What policies and limiters have is no option: otherwise the compiler would take it beside options as well. */
type NothingElse<Request> = {
  readonly [Name in Exclude<keyof (Policy & EdgeLimiter) & string, keyof GatekeeperOptions<Request>>]?: undefined
}

/** What of the options says how much is let through, and not how: nobody takes it over from others. */
const OWN = ['policy', 'limiter', 'limits', 'cost', 'unit', 'problem', 'slowDown', 'banAfter'] as const

/**
 * The options that an argument stands for.
 *
 * @param takenBy what takes it, for messages.
 * @param second what stands behind it, where nothing is taken: options there would count for nothing.
 * @throws {PolicyError} `OPTION_INVALID` on what is none of the three, and on options behind it; `OPTION_UNKNOWN` on options beside the numbers
 *   of a policy
 */
export function optionsOf<Request>(
  argument: LimitArgument<Request> | GatekeeperOptions<Request>,
  takenBy = 'rateLimit',
  second?: unknown,
): GatekeeperOptions<Request> {
  if (typeof argument !== 'object' || argument === null) {
    const called = typeof argument === 'function' ? `. A function of the request belongs into ${takenBy}({ policy: (request) => ... })` : ''
    const mend = `must be a policy such as tokenBucket({...}), a limiter, or options with one${called}`
    throw new PolicyError('OPTION_INVALID', 'options', argument, mend)
  }
  const mistaken = mistakenFor(argument, takenBy)
  if (mistaken !== undefined) throw new PolicyError('OPTION_INVALID', 'options', argument, mistaken)
  // `policies.map(rateLimit)` brings numbers and arrays.
  if (typeof second === 'object' && second !== null && !Array.isArray(second)) throw notBehind(argument, second, takenBy)
  if ('take' in argument) return { limiter: argument as EdgeLimiter }
  if (!('algorithm' in argument)) return argument as GatekeeperOptions<Request>
  const beside = besideFields(argument)
  if (beside.length > 0) throw notOfPolicy(argument, beside, `${takenBy}({ policy: tokenBucket({...}), ${beside.join(', ')} })`)
  return { policy: argument as Policy }
}

function notBehind(argument: object, second: object, takenBy: string): PolicyError {
  const first = 'take' in argument ? 'limiter' : 'policy'
  const mend = `must be one object with all options: say ${takenBy}({ ${[first, ...Object.keys(second)].join(', ')} })`
  return new PolicyError('OPTION_INVALID', 'options', second, mend)
}

/** What a framework hands to its middleware or plugins stands here where the function itself was given to it, and not what it makes. */
function mistakenFor(argument: object, takenBy: string): string | undefined {
  if ('addHook' in argument && 'register' in argument) return `is the app: call it, app.register(${takenBy}(policy))`
  if ('then' in argument) return 'must not be a promise: await it'
  if (Array.isArray(argument))
    return `is an array: for several limits say ${takenBy}({ limits: [{ policy, key }, ...] }), or allOf([...]) on one key`
  const isRequest = ('headers' in argument && 'method' in argument && !('policy' in argument)) || ('req' in argument && 'res' in argument)
  return isRequest ? `is a request, as ${takenBy} itself was given for what it makes: call it, app.use(${takenBy}(policy))` : undefined
}

/** The options of a limit that a route has of its own. @throws {PolicyError} where they have none, or are misspelt */
export function ownOptions<Request>(argument: LimitArgument<Request>, takenBy?: string, second?: unknown): GatekeeperOptions<Request> {
  const options = optionsOf(argument, takenBy, second)
  checkOptionNames(options, takenBy)
  if (options.policy === undefined && options.limiter === undefined && options.limits === undefined) {
    const mend = 'or limiter must be given: of other limits a route takes over how they count and answer, and not how much they let through'
    throw new PolicyError('OPTION_INVALID', 'policy', options.policy, mend)
  }
  return options
}

/** The options of one route: what it does not say is as it is for all. @throws {PolicyError} where it has no limit */
export function routeOptions<Request>(all: GatekeeperOptions<Request>, argument: LimitArgument<Request>): GatekeeperOptions<Request> {
  const shared: Record<string, unknown> = { ...all }
  for (const option of OWN) delete shared[option]
  return { ...shared, ...ownOptions(argument) }
}

/**
 * Whether options are those of a limit, or only say how limits of routes are to be. Those that routes never take over mean a limit, also where
 * its policy was forgotten.
 *
 * @throws {PolicyError} `OPTION_UNKNOWN`: who misspells the policy would have no limit at all
 */
export function namesLimit<Request>(options: GatekeeperOptions<Request>, takenBy?: string): boolean {
  checkOptionNames(options, takenBy)
  return OWN.some((option) => Object.hasOwn(options, option))
}
