import { PolicyError } from '../errors.js'
import { concurrency } from './concurrency-policy.js'
import type { Algorithm, Policy } from './policy.js'
import { gcra, tokenBucket } from './rate-policy.js'
import { fixedWindow, slidingLog, slidingWindow } from './window-policy.js'

/** Makes a policy anew from the fields of one. */
export type PolicyMaker = (policy: Policy) => Policy

/** Makers of all algorithms but `allOf`: each refuses wrong fields, and names the one that is wrong. */
export const SINGLE_POLICIES: Readonly<Record<Exclude<Algorithm, 'all-of'>, PolicyMaker>> = {
  'token-bucket': ({ limit, windowMs: window, burst, name }) => tokenBucket({ limit, window, burst, name }),
  gcra: ({ limit, windowMs: window, burst, name }) => gcra({ limit, window, burst, name }),
  'fixed-window': ({ limit, windowMs: window, calendar, name }) =>
    calendar === undefined
      ? fixedWindow({ limit, window, name })
      : fixedWindow({ limit, window: calendar.unit, timeZone: calendar.timeZone, name }),
  'sliding-window': ({ limit, windowMs: window, counters, name }) => slidingWindow({ limit, window, counters: counters ?? 'exact', name }),
  'sliding-log': ({ limit, windowMs: window, slotBytes = 8, name }) => slidingLog({ limit, window, slotBytes, name }),
  concurrency: ({ limit, windowMs: ttl, name }) => concurrency({ limit, ttl, name }),
}

const FIELDS: ReadonlySet<string> = new Set([
  'algorithm',
  'name',
  'limit',
  'windowMs',
  'burst',
  'calendar',
  'counters',
  'slotBytes',
  'policies',
] satisfies (keyof Policy)[])

/**
 * The policy, made anew by the maker of its algorithm.
 *
 * @param takenBy the function that takes it, for the message: `createLimiter`.
 * @throws {PolicyError} `POLICY_INVALID`; `OPTION_UNKNOWN` for a field that no policy has
 */
export function remadePolicy(makers: Readonly<Record<string, PolicyMaker>>, policy: unknown, option: string, takenBy?: string): Policy {
  const { algorithm } = (policy ?? {}) as Partial<Policy>
  const maker = typeof algorithm === 'string' && Object.hasOwn(makers, algorithm) ? makers[algorithm] : undefined
  if (maker === undefined) throw new PolicyError('POLICY_INVALID', option, policy, `must be made by ${makerFor(policy, takenBy)}`)
  const beside = besideFields(policy as object)
  if (beside.length > 0) throw notOfPolicy(policy as object, beside, takenBy && `${takenBy}(policy, { ${beside.join(', ')} })`)
  return maker(policy as Policy)
}

/** What an object that has the fields of a policy has beside them. */
export function besideFields(policy: object): string[] {
  return Object.keys(policy).filter((name) => !FIELDS.has(name))
}

/** @param instead how to write what was meant. */
export function notOfPolicy(policy: object, beside: readonly string[], instead = 'give policies and options apart'): PolicyError {
  const mend = `is no part of a policy, where it would count for nothing: ${instead}`
  return new PolicyError('OPTION_UNKNOWN', beside[0] as string, policy[beside[0] as never], mend)
}

function makerFor(policy: unknown, takenBy: string | undefined): string {
  const siblings = 'tokenBucket(), slidingWindow() or one of their siblings'
  if (typeof policy === 'function') return `${siblings}: call it, tokenBucket({ limit: 100, window: '1m' })`
  if (typeof policy !== 'object' || policy === null) return siblings
  if ('then' in policy) return `${siblings}: await it`
  if ('policy' in policy && takenBy !== undefined) return `${siblings}: say ${takenBy}(policy, options)`
  if ('windowMs' in policy || 'max' in policy)
    return `${siblings}; options of express-rate-limit are taken by sluicegate/express-rate-limit`
  if ('points' in policy || 'duration' in policy)
    return `${siblings}; options of rate-limiter-flexible are taken by sluicegate/rate-limiter-flexible`
  const throttle = ['minTime', 'maxConcurrent', 'reservoir', 'intervalCap'].find((name) => name in policy)
  if (throttle !== undefined)
    return `${siblings}; options of Bottleneck and p-queue, such as ${throttle}, are translated in node_modules/sluicegate/docs/moving-from-bottleneck.md`
  const numbers = Object.keys(policy).filter((name) => name === 'limit' || name === 'window')
  if (numbers.length === 0) return siblings
  const made = `tokenBucket({ ${numbers.length === 2 ? 'limit, window' : "limit: 100, window: '1m'"} })`
  return `${siblings}: say ${takenBy === undefined ? made : `${takenBy}(${made})`}`
}
