import { PolicyError } from '../../errors.js'
import { checkMiddlewareOptions } from '../../middleware/check-options.js'
import { type LimitArgument, ownOptions } from '../../middleware/limit-argument.js'
import type { LimitingOptions } from '../../middleware/middleware-options.js'
import { onceInProcess } from '../../once-in-process.js'
import type { NestRequest } from './nest-exchange.js'

/** What was said of a class or a method: its limit, or false for none. */
type Said = LimitArgument<never> | false

/** Kept beside, so that nothing depends on reflect-metadata, and legacy and standard decorators are alike. */
const said = /* @__PURE__ */ onceInProcess('Nest limits', () => new WeakMap<object, Said>())

/** Noted there as well, where it is: decorators that put another function in the place of a method copy what was said of the first. */
const SAID: unique symbol = Symbol.for('sluicegate: rate limit')

/** What is used of reflect-metadata. */
interface Metadata {
  defineMetadata(key: unknown, value: Said, target: object): void
  getOwnMetadata(key: unknown, target: object): Said | undefined
}

const metadata: Partial<Metadata> = Reflect

/** A decorator of classes and methods, of TypeScript's legacy kind and of the standard's. */
export type RateLimitDecorator = (target: object, about?: unknown, descriptor?: PropertyDescriptor) => void

/**
 * The limit of a controller, for all of its handlers together, or of one handler: instead of the module's own. It has a policy, a limiter or limits
 * of its own; how it counts and answers, where it does not say, is as in the module.
 *
 * It takes effect where {@link RateLimitGuard} stands guard, and nowhere else.
 *
 * @throws {PolicyError} on an option that is wrong, when the class is defined.
 * @example
 * \@RateLimit({ policy: tokenBucket({ limit: 5, window: '1h' }), counts: 'failures' })
 */
export function RateLimit<Request = NestRequest>(options: LimitingOptions<Request>): RateLimitDecorator
export function RateLimit<Request = NestRequest>(argument: LimitArgument<Request>): RateLimitDecorator
export function RateLimit<Request>(argument: LimitArgument<Request>, second?: unknown): RateLimitDecorator {
  const takenBy = '@RateLimit'
  checkMiddlewareOptions(ownOptions(argument, takenBy, second), takenBy)
  return saying('RateLimit', argument as Said)
}

/** Without a limit, in a controller or an app that has one. */
export function SkipRateLimit(): RateLimitDecorator {
  return saying('SkipRateLimit', false)
}

/** What a limit was said of, the nearest first: the handler, its controller, those that it extends. */
export function limitSaidOf(handler: object, controller: object): { readonly target: object; readonly limit: Said } | undefined {
  let target: object | null = handler
  let next: object | null = controller
  while (target !== null) {
    const limit = said.get(target) ?? metadata.getOwnMetadata?.(SAID, target)
    if (limit !== undefined) return { target, limit }
    target = next
    next = next === null ? null : (Object.getPrototypeOf(next) as object | null)
  }
  return undefined
}

function saying(name: string, limit: Said): RateLimitDecorator {
  return (target, _, descriptor) => {
    const decorated: unknown = descriptor === undefined ? target : descriptor.value
    if (typeof decorated !== 'function') {
      throw new PolicyError('OPTION_INVALID', `@${name}`, decorated, 'belongs on a controller or one of its methods')
    }
    said.set(decorated, limit)
    metadata.defineMetadata?.(SAID, limit, decorated)
  }
}
