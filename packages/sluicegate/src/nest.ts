import type { DynamicModule, FactoryProvider, ModuleMetadata, Provider } from '@nestjs/common'
import { checkGatekeeperOptions } from './edge/checked-options.js'
import type { LimitingOptions } from './edge/gatekeeper-options.js'
import { type LimitArgument, optionsOf } from './edge/limit-argument.js'
import { PolicyError } from './errors.js'
import type { NestRequest } from './nest/nest-request.js'
import { RateLimitFilter } from './nest/rate-limit-filter.js'
import { RateLimitGuard } from './nest/rate-limit-guard.js'
import { isGlobal, type RateLimitPlace } from './nest/rate-limit-place.js'
import { RateLimits } from './nest/rate-limits.js'

export type { LimitingOptions as RateLimitOptions } from './edge/gatekeeper-options.js'
export type * from './edge/option-types.js'
export type { NestRequest } from './nest/nest-request.js'
export { RateLimitException } from './nest/rate-limit-exception.js'
export { RateLimitFilter } from './nest/rate-limit-filter.js'
export { RateLimitGuard } from './nest/rate-limit-guard.js'
export type { RateLimitPlace } from './nest/rate-limit-place.js'
export { RateLimit, type RateLimitDecorator, SkipRateLimit } from './nest/rate-limited.js'

/** A limit that is made of what the app provides. */
export interface AsyncRateLimit<Request> extends RateLimitPlace, Pick<ModuleMetadata, 'imports'> {
  readonly inject?: FactoryProvider['inject']
  readonly useFactory: (...injected: never[]) => LimitArgument<Request> | Promise<LimitArgument<Request>>
}

// What Nest calls APP_GUARD and APP_FILTER, in a package that is not needed otherwise.
const GUARD_OF_ALL = 'APP_GUARD'
const FILTER_OF_ALL = 'APP_FILTER'

/** Limits the handlers of an app of Nest, on Express or on Fastify. What no controller handles comes to no guard: it is not limited. */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class RateLimitModule {
  /**
   * Each app that is made of it has budgets of its own, unless it is given a limiter.
   *
   * @param argument of all handlers; options without a policy, or nothing, limit those alone that have `@RateLimit(...)`.
   * @throws {PolicyError} on an option that is wrong.
   * @example
   * \@Module({ imports: [RateLimitModule.forRoot(tokenBucket({ limit: 100, window: '1m' }))] })
   */
  static forRoot<Request = NestRequest>(options?: LimitingOptions<Request>, place?: RateLimitPlace): DynamicModule
  static forRoot<Request = NestRequest>(argument?: LimitArgument<Request>, place?: RateLimitPlace): DynamicModule
  static forRoot<Request>(argument: LimitArgument<Request> = {}, place: RateLimitPlace = {}): DynamicModule {
    const takenBy = 'RateLimitModule.forRoot'
    checkGatekeeperOptions(optionsOf(argument, takenBy), takenBy)
    return moduleOf({ provide: RateLimits, useFactory: () => new RateLimits<Request>(argument, { perRoute: true }) }, isGlobal(place))
  }

  /** The same once other providers are there. */
  static forRootAsync<Request = NestRequest>({ imports = [], inject = [], useFactory, ...place }: AsyncRateLimit<Request>): DynamicModule {
    if (typeof useFactory !== 'function') throw new PolicyError('OPTION_INVALID', 'useFactory', useFactory, 'must be a function')
    const limits: Provider = {
      provide: RateLimits,
      inject,
      useFactory: async (...injected: never[]) => new RateLimits<Request>(await useFactory(...injected), { perRoute: true }),
    }
    return { ...moduleOf(limits, isGlobal(place)), imports }
  }
}

function moduleOf(limits: Provider, global: boolean): DynamicModule {
  const filter: Provider = { provide: FILTER_OF_ALL, useClass: RateLimitFilter }
  const ofAll: Provider[] = global ? [{ provide: GUARD_OF_ALL, useExisting: RateLimitGuard }] : []
  return {
    module: RateLimitModule,
    global: true,
    providers: [limits, RateLimitGuard, filter, ...ofAll],
    exports: [RateLimits, RateLimitGuard],
  }
}
