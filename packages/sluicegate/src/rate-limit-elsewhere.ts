import { PolicyError } from './errors.js'

/**
 * Stands where `rateLimit` is looked for first: the middleware is in the entry point of each framework.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 * @internal
 */
export function rateLimit(argument: unknown): never {
  const mend = "is in the entry point of your framework: import { rateLimit } from 'sluicegate/express', or /fastify, /hono, /koa, /fetch"
  throw new PolicyError('OPTION_INVALID', 'rateLimit', argument, `${mend}; without a framework say createLimiter(policy).take(key)`)
}
