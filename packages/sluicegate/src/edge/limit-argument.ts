import { PolicyError } from '../errors.js'
import type { Policy } from '../policy/policy.js'
import type { EdgeLimiter } from './edge-limiter.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'

/** What middleware is told first: a policy, a limiter, or options with one of them. */
export type LimitArgument<Request> = Policy | EdgeLimiter | GatekeeperOptions<Request>

/** What of the options says how much is let through, and not how: nobody takes it over from others. */
const OWN = ['policy', 'limiter', 'limits', 'cost', 'unit', 'problem'] as const

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

/** The options of one route: what it does not say is as it is for all. */
export function routeOptions<Request>(all: GatekeeperOptions<Request>, argument: LimitArgument<Request>): GatekeeperOptions<Request> {
  const shared: Record<string, unknown> = { ...all }
  for (const option of OWN) delete shared[option]
  return { ...shared, ...optionsOf(argument) }
}

/** Whether options name a limit, or only say how limits of routes are to be. */
export function namesLimit<Request>({ policy, limiter, limits }: GatekeeperOptions<Request>): boolean {
  return policy !== undefined || limiter !== undefined || limits !== undefined
}
