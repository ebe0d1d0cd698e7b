import { PolicyError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { EdgeLimiter } from './edge-limiter.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'
import { checkOptionNames } from './option-names.js'

/** What middleware is told first: a policy, a limiter, or options with one of them. */
export type LimitArgument<Request> = Policy | EdgeLimiter | GatekeeperOptions<Request>

/** What of the options says how much is let through, and not how: nobody takes it over from others. */
const OWN = ['policy', 'limiter', 'limits', 'cost', 'unit', 'problem', 'slowDown', 'banAfter'] as const

/** The options that an argument stands for. @throws {PolicyError} `OPTION_INVALID` on what is none of the three */
export function optionsOf<Request>(argument: LimitArgument<Request>): GatekeeperOptions<Request> {
  if (typeof argument !== 'object' || argument === null) {
    throw new PolicyError(
      'OPTION_INVALID',
      'options',
      argument,
      'must be a policy such as tokenBucket({...}), a limiter, or options with one',
    )
  }
  if ('take' in argument) return { limiter: argument }
  if ('algorithm' in argument) return { policy: argument }
  return argument
}

/** The options of a limit that a route has of its own. @throws {PolicyError} where they have none, or are misspelt */
export function ownOptions<Request>(argument: LimitArgument<Request>): GatekeeperOptions<Request> {
  const options = optionsOf(argument)
  checkOptionNames(options)
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
export function namesLimit<Request>(options: GatekeeperOptions<Request>): boolean {
  checkOptionNames(options)
  return OWN.some((option) => Object.hasOwn(options, option))
}
