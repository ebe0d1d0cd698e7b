import { PolicyError } from '../errors.js'
import { unknownOption } from '../options/option-checks.js'

/** Those of one limit. */
export const LIMIT_OPTIONS = ['policy', 'limiter', 'key', 'cost', 'shadow', 'unit', 'problem', 'slowDown', 'banAfter']
const OWN_OPTIONS = ['limits', 'skip', 'counts', 'headers', 'body', 'status', 'onDenied', 'onOutage']

/** For messages. */
export const EXAMPLE = '{ policy: tokenBucket({ limit: 100, window: "1m" }) }'

/** Options of others that say what they are of. */
const OF_OTHERS: readonly (readonly [names: readonly string[], mend: string])[] = [
  [
    ['windowMs', 'max', 'standardHeaders', 'legacyHeaders', 'keyGenerator', 'skipFailedRequests', 'skipSuccessfulRequests', 'ipv6Subnet'],
    'options of express-rate-limit are taken by rateLimit() of sluicegate/express-rate-limit',
  ],
  [['points', 'duration', 'blockDuration'], 'options of rate-limiter-flexible are taken by sluicegate/rate-limiter-flexible'],
  [['limit', 'window', 'burst', 'algorithm'], "numbers belong into a policy: say { policy: tokenBucket({ limit: 100, window: '1m' }) }"],
]

/** Looks at the names of options alone, which `takenBy` takes. @throws {PolicyError} `OPTION_UNKNOWN` */
export function checkOptionNames(options: object, takenBy = 'rateLimit'): void {
  checkNames(options, [...LIMIT_OPTIONS, ...OWN_OPTIONS], `${takenBy}()`)
}

/** The same of one of `limits`. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function checkLimitNames(limit: unknown): void {
  if (typeof limit !== 'object' || limit === null) {
    throw new PolicyError('OPTION_INVALID', 'limits', limit, `must be an object such as ${EXAMPLE}`)
  }
  checkNames(limit, LIMIT_OPTIONS, 'each of limits')
}

function checkNames(options: object, known: readonly string[], of: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (!known.includes(option)) throw unknownOption({ option, value, known, of, mend: mendOf(options, option) })
  }
}

/** Those that come with a time in milliseconds are of express-rate-limit, also `limit`. */
function mendOf(options: object, option: string): string | undefined {
  const names = [option, ...Object.keys(options)]
  const found = OF_OTHERS.find(([own]) => own.includes(option)) && OF_OTHERS.find(([own]) => names.some((name) => own.includes(name)))
  return found?.[1]
}
