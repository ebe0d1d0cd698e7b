import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ExecutionContext, Get, type Type } from '@nestjs/common'
import { fixedWindow, type Policy, PolicyError } from '../../index.js'
import { RateLimit, RateLimitException, RateLimitGuard, SkipRateLimit } from '../nest.js'

const perDay = (limit: number): Policy => fixedWindow({ limit, window: 'day' })

/** Whether a guard without its own limit lets a request to a handler pass. */
function asking(controller: Type): (handler: () => unknown) => boolean {
  const guard = new RateLimitGuard()
  const response = { headersSent: false, setHeader: () => undefined }
  return (handler) => {
    const request = { method: 'GET', originalUrl: '/', headers: {}, socket: { remoteAddress: '192.0.2.1' } }
    const context = {
      getType: () => 'http',
      getHandler: () => handler,
      getClass: () => controller,
      switchToHttp: () => ({ getRequest: () => request, getResponse: () => response }),
    }
    try {
      return guard.canActivate(context as unknown as ExecutionContext) as boolean
    } catch (error) {
      assert.ok(error instanceof RateLimitException)
      return false
    }
  }
}

test('standard and legacy decorators have the same effect', () => {
  class Standard {
    get(): string {
      return 'ok'
    }
    free(): string {
      return 'free'
    }
  }
  RateLimit(perDay(1))(Standard, { kind: 'class', name: 'Standard' })
  SkipRateLimit()(Standard.prototype.free, { kind: 'method', name: 'free' })
  const passes = asking(Standard)
  const { get, free } = Standard.prototype
  assert.deepEqual([get, get, free, free].map(passes), [true, false, true, true])
})

/** As decorators do that trace or cache: another function in the place of the method, to which its metadata is copied. */
function Traced(_target: object, _name: string | symbol, descriptor: PropertyDescriptor): void {
  const inner = descriptor.value as (...given: unknown[]) => unknown
  const outer = function (this: unknown, ...given: unknown[]): unknown {
    return inner.apply(this, given)
  }
  for (const key of Reflect.getMetadataKeys(inner)) Reflect.defineMetadata(key, Reflect.getMetadata(key, inner), outer)
  descriptor.value = outer
}

test('the limit of a handler applies to the function that another decorator replaced it with', () => {
  @RateLimit(perDay(2))
  class Wrapped {
    @Traced
    @Get('own')
    @RateLimit(perDay(1))
    own(): string {
      return 'own'
    }

    @Traced
    @SkipRateLimit()
    free(): string {
      return 'free'
    }
  }
  const passes = asking(Wrapped)
  const { own, free } = Wrapped.prototype
  assert.deepEqual([own, own, free, free, free].map(passes), [true, false, true, true, true])
})

test('a decorator whose limit is wrong, or none, is refused where it is written', () => {
  const key = (): string => 'all'
  for (const [argument, code, option] of [
    [undefined, 'OPTION_INVALID', 'options'],
    [5, 'OPTION_INVALID', 'options'],
    [{}, 'OPTION_INVALID', 'policy'],
    [{ key }, 'OPTION_INVALID', 'policy'],
    [{ cost: 2 }, 'OPTION_INVALID', 'policy'],
    [{ polcy: perDay(1) }, 'OPTION_UNKNOWN', 'polcy'],
    [{ policy: perDay(1), kye: key }, 'OPTION_UNKNOWN', 'kye'],
    [{ policy: { limit: 5 } }, 'POLICY_INVALID', 'policy'],
    [{ limiter: {} }, 'OPTION_INVALID', 'limiter'],
    [{ limits: [{ policy: perDay(1) }, { policy: perDay(1) }] }, 'NAME_INVALID', 'name'],
    [{ policy: perDay(1), key: 'ip' }, 'OPTION_INVALID', 'key'],
    [{ policy: perDay(1), counts: 'fail' }, 'OPTION_INVALID', 'counts'],
    [{ policy: perDay(1), status: 204 }, 'OPTION_INVALID', 'status'],
    [{ policy: perDay(1), body: 'html' }, 'OPTION_INVALID', 'body'],
    [{ policy: perDay(1), headers: 'draft-3' }, 'OPTION_INVALID', 'version'],
    [{ policy: perDay(1), onOutage: 'local' }, 'OPTION_INVALID', 'onOutage'],
  ] as const) {
    assert.throws(() => RateLimit(argument as never), { name: 'PolicyError', code, option })
  }
})

test('a decorator on what is neither a class nor a method is refused', () => {
  assert.throws(
    () => RateLimit(perDay(1))({}, 'field'),
    (error) => error instanceof PolicyError && error.code === 'OPTION_INVALID',
  )
})
