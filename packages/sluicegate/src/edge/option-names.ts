import { checkOptions } from '../policy/policy-options.js'

/** Those of one limit. */
export const LIMIT_OPTIONS = ['policy', 'limiter', 'key', 'cost', 'shadow', 'unit', 'problem', 'slowDown', 'banAfter']
const OWN_OPTIONS = ['limits', 'skip', 'counts', 'headers', 'body', 'status', 'onDenied', 'onOutage']

/** For messages. */
export const EXAMPLE = '{ policy: tokenBucket({ limit: 100, window: "1m" }) }'

/** Looks at the names of options alone. @throws {PolicyError} `OPTION_UNKNOWN` */
export function checkOptionNames(options: object): void {
  checkOptions(options, [...LIMIT_OPTIONS, ...OWN_OPTIONS], EXAMPLE)
}
