import type { DynamicModule, FactoryProvider, ModuleMetadata, Provider } from '@nestjs/common'
import type { LimitArgument } from './edge/limit-argument.js'
import type { NestRequest } from './nest/nest-request.js'
import { RateLimitFilter } from './nest/rate-limit-filter.js'
import { RateLimitGuard } from './nest/rate-limit-guard.js'
import { RateLimits } from './nest/rate-limits.js'

export type { GatekeeperOptions as RateLimitOptions } from './edge/gatekeeper-options.js'
export type * from './edge/option-types.js'
export type { NestRequest } from './nest/nest-request.js'
export { RateLimitException } from './nest/rate-limit-exception.js'
export { RateLimitFilter } from './nest/rate-limit-filter.js'
export { RateLimitGuard } from './nest/rate-limit-guard.js'
export { RateLimit, type RateLimitDecorator, SkipRateLimit } from './nest/rate-limited.js'

/** Where the guard stands. */
export interface RateLimitPlace {
  /** Before every handler of the app, default true. Else only where `@UseGuards(RateLimitGuard)` says, such as behind a guard that finds the user. */
  readonly global?: boolean
}

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
   * @param argument of all handlers; options without a policy, or nothing, limit those alone that have `@RateLimit(...)`.
   * @throws {PolicyError} on an option that is wrong.
   * @example
   * \@Module({ imports: [RateLimitModule.forRoot(tokenBucket({ limit: 100, window: '1m' }))] })
   */
  static forRoot<Request = NestRequest>(argument: LimitArgument<Request> = {}, place: RateLimitPlace = {}): DynamicModule {
    return moduleOf({ provide: RateLimits, useValue: new RateLimits<Request>(argument) }, place)
  }

  /** The same once other providers are there. */
  static forRootAsync<Request = NestRequest>({ imports = [], inject = [], useFactory, global }: AsyncRateLimit<Request>): DynamicModule {
    const limits: Provider = {
      provide: RateLimits,
      inject,
      useFactory: async (...injected: never[]) => new RateLimits<Request>(await useFactory(...injected)),
    }
    return { ...moduleOf(limits, { ...(global !== undefined && { global }) }), imports }
  }
}

function moduleOf(limits: Provider, { global = true }: RateLimitPlace): DynamicModule {
  const filter: Provider = { provide: FILTER_OF_ALL, useClass: RateLimitFilter }
  const ofAll: Provider[] = global ? [{ provide: GUARD_OF_ALL, useExisting: RateLimitGuard }] : []
  return {
    module: RateLimitModule,
    global: true,
    providers: [limits, RateLimitGuard, filter, ...ofAll],
    exports: [RateLimits, RateLimitGuard],
  }
}
