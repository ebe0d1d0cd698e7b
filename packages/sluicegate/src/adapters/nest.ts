import type { DynamicModule, FactoryProvider, ModuleMetadata, Provider } from '@nestjs/common'
import { ModulesContainer } from '@nestjs/core'
import { PolicyError } from '../errors.js'
import { checkMiddlewareOptions } from '../middleware/check-options.js'
import { type LimitArgument, optionsOf } from '../middleware/limit-argument.js'
import type { LimitingOptions } from '../middleware/middleware-options.js'
import { asGiven, checkBoolean } from '../options/option-checks.js'
import { refuseGateways } from './nest/limited-gateways.js'
import type { NestRequest } from './nest/nest-exchange.js'
import { RateLimitFilter, RateLimitGuard, RateLimits } from './nest/rate-limit-guard.js'

export { holdOf } from '../holds/hold-of.js'
export type * from '../middleware/option-types.js'
export type { NestRequest } from './nest/nest-exchange.js'
export { RateLimit, type RateLimitDecorator, SkipRateLimit } from './nest/rate-limit-decorator.js'
export { RateLimitException, RateLimitFilter, RateLimitGuard } from './nest/rate-limit-guard.js'

/** Options of {@link RateLimitModule} and {@link RateLimit}. */
export type RateLimitOptions<Request = NestRequest> = LimitingOptions<Request>

/** A limit made from providers of the app. */
interface AsyncRateLimit<Request> extends RateLimitPlace, Pick<ModuleMetadata, 'imports'> {
  readonly inject?: FactoryProvider['inject']
  readonly useFactory: (...injected: never[]) => LimitArgument<Request> | Promise<LimitArgument<Request>>
}

// The tokens APP_GUARD and APP_FILTER of Nest, whose package is not needed otherwise.
const GUARD_OF_ALL = 'APP_GUARD'
const FILTER_OF_ALL = 'APP_FILTER'

/**
 * Rate limits the handlers of a Nest app, on Express or on Fastify. Requests without a handler reach no guard and are not limited. An app with a
 * WebSocket gateway that the limit of all handlers would see does not start.
 */
// biome-ignore lint/complexity/noStaticOnlyClass: a module of Nest is a class
export class RateLimitModule {
  /**
   * Each app has budgets of its own, unless a limiter is given.
   *
   * @param argument the limit of all handlers; without a policy only handlers with `@RateLimit(...)` are limited.
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

  /** The same, once the providers it needs are available. */
  static forRootAsync<Request = NestRequest>(options: AsyncRateLimit<Request>): DynamicModule {
    const { imports = [], inject = [], useFactory, ...place } = asGiven(options, ['imports', 'inject', 'useFactory'])
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
  const atStart = {
    provide: 'sluicegate: gateways',
    inject: [ModulesContainer, RateLimits],
    useFactory: (modules: ModulesContainer, ofApp: RateLimits) => ({ onApplicationBootstrap: () => refuseGateways(modules, ofApp) }),
  }
  const ofAll: Provider[] = global ? [{ provide: GUARD_OF_ALL, useExisting: RateLimitGuard }, atStart] : []
  return {
    module: RateLimitModule,
    global: true,
    providers: [limits, RateLimitGuard, filter, ...ofAll],
    exports: [RateLimits, RateLimitGuard],
  }
}

/** Where the guard is registered. */
interface RateLimitPlace {
  /**
   * Before every handler of the app; default true. If false, only where `@UseGuards(RateLimitGuard)` is, such as after a guard that sets
   * the user.
   */
  readonly global?: boolean
}

/** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
function isGlobal(place: RateLimitPlace): boolean {
  for (const [option, value] of Object.entries(place)) {
    if (option !== 'global')
      throw new PolicyError(
        'OPTION_UNKNOWN',
        option,
        value,
        'is not global, the only option beside the limit: give others with it in one object, RateLimitModule.forRoot({ policy, key })',
      )
  }
  const { global = true } = asGiven(place, ['global'])
  checkBoolean('global', global)
  return global
}
