import { PolicyError } from '../errors.js'
import { unknownOption } from '../options/option-checks.js'

/** The options of one limit. */
export const LIMIT_OPTIONS: readonly string[] = ['policy', 'limiter', 'key', 'cost', 'shadow', 'unit', 'problem', 'slowDown', 'banAfter']
const OTHER_OPTIONS: readonly string[] = ['limits', 'skip', 'counts', 'headers', 'body', 'status', 'onDenied', 'onOutage']

/** For messages. */
export const EXAMPLE = '{ policy: tokenBucket({ limit: 100, window: "1m" }) }'

/** Options of other libraries, with what to write instead. */
const OPTIONS_OF_OTHERS: readonly (readonly [names: readonly string[], mend: string])[] = [
  [
    ['windowMs', 'max', 'standardHeaders', 'legacyHeaders', 'keyGenerator', 'skipFailedRequests', 'skipSuccessfulRequests', 'ipv6Subnet'],
    'options of express-rate-limit are taken by rateLimit() of sluicegate/express-rate-limit',
  ],
  [['points', 'duration', 'blockDuration'], 'options of rate-limiter-flexible are taken by sluicegate/rate-limiter-flexible'],
  [['limit', 'window', 'burst', 'algorithm'], "numbers belong into a policy: say { policy: tokenBucket({ limit: 100, window: '1m' }) }"],
]

/** @param takenBy the function that takes the options, for the message. @throws {PolicyError} `OPTION_UNKNOWN` */
export function checkOptionNames(options: object, takenBy = 'rateLimit'): void {
  checkNames(options, [...LIMIT_OPTIONS, ...OTHER_OPTIONS], `${takenBy}()`)
}

/** The names of one of `limits`. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
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

/** `limit` beside a time in milliseconds is an option of express-rate-limit, alone it belongs to a policy. */
function mendOf(options: object, option: string): string | undefined {
  const names = [option, ...Object.keys(options)]
  const isOfOthers = OPTIONS_OF_OTHERS.some(([own]) => own.includes(option))
  return isOfOthers ? OPTIONS_OF_OTHERS.find(([own]) => names.some((name) => own.includes(name)))?.[1] : undefined
}
