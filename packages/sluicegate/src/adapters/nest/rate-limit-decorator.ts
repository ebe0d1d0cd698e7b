import { PolicyError } from '../../errors.js'
import { checkMiddlewareOptions } from '../../middleware/check-options.js'
import { type LimitArgument, ownOptions } from '../../middleware/limit-argument.js'
import type { LimitingOptions } from '../../middleware/middleware-options.js'
import { onceInProcess } from '../../once-in-process.js'
import type { NestRequest } from './nest-exchange.js'

/** The limit of a class or a method; false for none. */
type OwnLimit = LimitArgument<never> | false

/** Kept in a WeakMap, so that reflect-metadata is not needed, and legacy and standard decorators work alike. */
const ownLimits = /* @__PURE__ */ onceInProcess('Nest limits', () => new WeakMap<object, OwnLimit>())

/** Also kept as metadata, if available: decorators that replace a method copy its metadata. */
const OWN_LIMIT: unique symbol = Symbol.for('sluicegate: rate limit')

/** The part of reflect-metadata that is used. */
interface Metadata {
  defineMetadata(key: unknown, value: OwnLimit, target: object): void
  getOwnMetadata(key: unknown, target: object): OwnLimit | undefined
}

const metadata: Partial<Metadata> = Reflect

/** A decorator of classes and methods, legacy or standard. */
export type RateLimitDecorator = (target: object, about?: unknown, descriptor?: PropertyDescriptor) => void

/**
 * The limit of a controller, shared by its handlers, or of one handler, instead of the module's. It has a policy, a limiter or limits of
 * its own; options of counting and answering that it does not set are the module's.
 *
 * It takes effect only where {@link RateLimitGuard} is registered.
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
  return decoratorOf('RateLimit', argument as OwnLimit)
}

/** No limit, in a controller or an app that has one. */
export function SkipRateLimit(): RateLimitDecorator {
  return decoratorOf('SkipRateLimit', false)
}

/** The nearest target with a limit: the handler, its controller, the classes that this extends. */
export function ownLimitOf(handler: object, controller: object): { readonly target: object; readonly limit: OwnLimit } | undefined {
  let target: object | null = handler
  let next: object | null = controller
  while (target !== null) {
    const limit = ownLimits.get(target) ?? metadata.getOwnMetadata?.(OWN_LIMIT, target)
    if (limit !== undefined) return { target, limit }
    target = next
    next = next === null ? null : (Object.getPrototypeOf(next) as object | null)
  }
  return undefined
}

function decoratorOf(name: string, limit: OwnLimit): RateLimitDecorator {
  return (target, _, descriptor) => {
    const decorated: unknown = descriptor === undefined ? target : descriptor.value
    if (typeof decorated !== 'function') {
      throw new PolicyError('OPTION_INVALID', `@${name}`, decorated, 'belongs on a controller or one of its methods')
    }
    ownLimits.set(decorated, limit)
    metadata.defineMetadata?.(OWN_LIMIT, limit, decorated)
  }
}
