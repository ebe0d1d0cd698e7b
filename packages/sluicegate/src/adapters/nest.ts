import type { DynamicModule, FactoryProvider, ModuleMetadata, Provider } from '@nestjs/common'
import { PolicyError } from '../errors.js'
import { checkMiddlewareOptions } from '../middleware/check-options.js'
import { type LimitArgument, optionsOf } from '../middleware/limit-argument.js'
import type { LimitingOptions } from '../middleware/middleware-options.js'
import { checkBoolean } from '../options/option-checks.js'
import type { NestRequest } from './nest/nest-exchange.js'
import { RateLimitFilter } from './nest/rate-limit-exception.js'
import { RateLimitGuard, RateLimits } from './nest/rate-limit-guard.js'

export type { LimitingOptions as RateLimitOptions } from '../middleware/middleware-options.js'
export type * from '../middleware/option-types.js'
export type { NestRequest } from './nest/nest-exchange.js'
export { RateLimit, type RateLimitDecorator, SkipRateLimit } from './nest/rate-limit-decorator.js'
export { RateLimitException, RateLimitFilter } from './nest/rate-limit-exception.js'
export { RateLimitGuard } from './nest/rate-limit-guard.js'

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
    checkMiddlewareOptions(optionsOf(argument, takenBy), takenBy)
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

/** Where the guard stands. */
export interface RateLimitPlace {
  /** Before every handler of the app, default true. Else only where `@UseGuards(RateLimitGuard)` says, such as behind a guard that finds the user. */
  readonly global?: boolean
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
export function isGlobal(place: RateLimitPlace): boolean {
  for (const [option, value] of Object.entries(place)) {
    if (option !== 'global')
      throw new PolicyError(
        'OPTION_UNKNOWN',
        option,
        value,
        'is not global, the only option beside what limits: others belong into one object, RateLimitModule.forRoot({ policy, key })',
      )
  }
  const { global = true } = place
  checkBoolean('global', global)
  return global
}
