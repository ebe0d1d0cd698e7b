import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import { type CanActivate, Controller, type ExecutionContext, Get, type HttpException, Module, type Type, UseGuards } from '@nestjs/common'
import { type AbstractHttpAdapter, APP_FILTER, APP_GUARD, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { adapterSuite } from 'sluicegate-testkit/adapters/adapter-suite.js'
import { listening } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { nestApp, nestHarness } from 'sluicegate-testkit/adapters/nest-harness.js'
import { createLimiter, fixedWindow, type Policy } from '../index.js'
import { address, compose, route } from '../keys/index.js'
import {
  type NestRequest,
  RateLimit,
  type RateLimitException,
  RateLimitFilter,
  RateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
} from './nest.js'

const perDay = (limit: number, name = 'day'): Policy => fixedWindow({ limit, window: 'day', name })

const platforms: Record<string, () => AbstractHttpAdapter> = { express: () => new ExpressAdapter(), fastify: () => new FastifyAdapter() }

for (const [platform, adapter] of Object.entries(platforms))
  adapterSuite(nestHarness(`nest on ${platform}`, adapter), platform === 'fastify')

/** The statuses of these paths, one after the other. */
async function statuses(
  module: Type,
  paths: readonly string[],
  adapter = () => new ExpressAdapter() as AbstractHttpAdapter,
): Promise<number[]> {
  const { port, close } = await nestApp(module, adapter())
  try {
    const found: number[] = []
    for (const path of paths) found.push((await ask(port, path, { headers: { 'x-user': 'ada' } })).status)
    return found
  } finally {
    await close()
  }
}

@RateLimit(perDay(2, 'base'))
class Base {}

@Controller()
class Decorated extends Base {
  @Get('a')
  a() {
    return 'a'
  }

  @Get('b')
  b() {
    return 'b'
  }

  @RateLimit(perDay(1, 'own'))
  @Get('own')
  own() {
    return 'own'
  }

  @SkipRateLimit()
  @Get('free')
  free() {
    return 'free'
  }

  @RateLimit({ policy: perDay(2, 'route'), key: compose(address(), route()) })
  @Get('users/:id')
  user() {
    return 'user'
  }
}

const PATHS = ['/a', '/b', '/a', '/own', '/own', '/free', '/free', '/free', '/users/1', '/users/2', '/users/3']
const EXPECTED = [200, 200, 429, 200, 429, 200, 200, 200, 200, 200, 429]

for (const [platform, adapter] of Object.entries(platforms)) {
  test(`nest on ${platform}: the handlers of a controller share its limit, but for those with one of their own or none`, async () => {
    @Module({ imports: [RateLimitModule.forRoot(perDay(1, 'app'))], controllers: [Decorated] })
    class App {}
    assert.deepEqual(await statuses(App, PATHS, adapter), EXPECTED)
  })
}

test('nest: without a limit of all, those that have one are limited', async () => {
  @Controller()
  class Some {
    @Get('free')
    free() {
      return 'free'
    }

    @RateLimit(perDay(1))
    @Get('own')
    own() {
      return 'own'
    }
  }
  @Module({ imports: [RateLimitModule.forRoot()], controllers: [Some] })
  class App {}
  assert.deepEqual(await statuses(App, ['/free', '/free', '/own', '/own']), [200, 200, 200, 429])
})

test('nest: a guard alone denies with the problem, through the filter of Nest itself', async () => {
  @Controller()
  class Plain {
    @Get()
    get() {
      return 'ok'
    }
  }
  @Module({ controllers: [Plain] })
  class App {}
  for (const adapter of Object.values(platforms)) {
    const { port, close } = await nestApp(App, adapter(), (app) => app.useGlobalGuards(new RateLimitGuard(perDay(1))))
    assert.equal((await ask(port, '/')).status, 200)
    const { status, headers, text } = await ask(port, '/')
    assert.deepEqual([status, JSON.parse(text)['violated-policies']], [429, ['day']])
    assert.match(headers['content-type'] ?? '', /^application\/problem\+json/)
    assert.ok(Number(headers['retry-after']) > 0)
    await close()
  }
})

test('nest: limits may be made of what the app provides, and stand behind a guard that finds the user', async () => {
  class FindsUser implements CanActivate {
    canActivate(context: ExecutionContext): boolean {
      const request = context.switchToHttp().getRequest()
      request.user = request.headers['x-user']
      return true
    }
  }
  @Controller()
  @UseGuards(FindsUser, RateLimitGuard)
  class Users {
    @Get()
    get() {
      return 'ok'
    }
  }
  class Settings {
    readonly limit = 2
  }
  @Module({ providers: [Settings], exports: [Settings] })
  class SettingsModule {}
  const limited = RateLimitModule.forRootAsync({
    imports: [SettingsModule],
    inject: [Settings],
    useFactory: async ({ limit }: Settings) => ({ policy: perDay(limit), key: ({ user }: NestRequest) => user as string }),
    global: false,
  })
  // Nest makes a guard for each module that names it: they share one budget.
  @Controller('more')
  @UseGuards(FindsUser, RateLimitGuard)
  class MoreUsers {
    @Get()
    get() {
      return 'ok'
    }
  }
  @Module({ controllers: [MoreUsers] })
  class More {}
  @Module({ imports: [limited, More], controllers: [Users] })
  class App {}
  assert.deepEqual(await statuses(App, ['/', '/more', '/', '/more']), [200, 200, 429, 429])
})

for (const [platform, adapter] of Object.entries(platforms)) {
  test(`nest on ${platform}: a guard of all and the same before a controller count once, each guard of its own for itself`, async () => {
    const own = createLimiter(perDay(5, 'own'))
    @Controller()
    @UseGuards(RateLimitGuard, RateLimitGuard, new RateLimitGuard(own))
    class Twice {
      @Get()
      get() {
        return 'ok'
      }
    }
    @Module({ imports: [RateLimitModule.forRoot(perDay(2))], controllers: [Twice] })
    class App {}
    assert.deepEqual(await statuses(App, ['/', '/', '/'], adapter), [200, 200, 429])
    assert.equal(own.peek('127.0.0.1').remaining, 3)
  })
}

test('nest: each app that is made of a module starts afresh, but with a limiter that it was given', async () => {
  const given = createLimiter(perDay(1, 'given'))
  @Controller()
  class Some {
    @Get('all')
    all() {
      return 'all'
    }

    @RateLimit(perDay(1, 'own'))
    @Get('own')
    own() {
      return 'own'
    }

    @RateLimit({ limiter: given })
    @Get('given')
    given() {
      return 'given'
    }
  }
  @Module({ imports: [RateLimitModule.forRoot(perDay(1, 'app'))], controllers: [Some] })
  class App {}
  const paths = ['/all', '/all', '/own', '/own', '/given', '/given']
  assert.deepEqual(await statuses(App, paths), [200, 429, 200, 429, 200, 429])
  assert.deepEqual(await statuses(App, paths), [200, 429, 200, 429, 429, 429])
})

test('nest: an app that names the guard and has no module for it does not start', async () => {
  @Controller()
  @UseGuards(RateLimitGuard)
  class Bare {}
  @Module({ controllers: [Bare] })
  class App {}
  const started = NestFactory.create(App, new ExpressAdapter(), { logger: false, abortOnError: false })
  await assert.rejects(async () => (await started).init(), /RateLimits/)
})

test('nest: messages of microservices pass, those of clients without a request throw with what to do, unless they are skipped', () => {
  const guard = new RateLimitGuard(perDay(1))
  const context = (kind: string, handler: () => void = () => {}): ExecutionContext =>
    ({ getType: () => kind, getHandler: () => handler, getClass: () => Object, getArgByIndex: () => ({}) }) as unknown as ExecutionContext
  assert.equal(guard.canActivate(context('rpc')), true)
  assert.throws(() => guard.canActivate(context('ws')), /of kind 'ws': take from createLimiter\(policy\) there/)
  assert.throws(() => guard.canActivate(context('graphql')), /context: \(\{ req, res \}\) => \(\{ req, res \}\)/)
  const skipped = (): void => {}
  SkipRateLimit()({}, 'skipped', { value: skipped } as never)
  assert.equal(guard.canActivate(context('ws', skipped)), true)
})

test('nest: an app with a gateway whose messages the guard would see does not start, until they are skipped', async () => {
  const started = async (isSkipped: boolean): Promise<void> => {
    class Chat {
      say() {
        return 'said'
      }
    }
    Reflect.defineMetadata('websockets:is_gateway', true, Chat)
    Reflect.defineMetadata('websockets:message_mapping', true, Chat.prototype.say)
    if (isSkipped) SkipRateLimit()(Chat)
    @Module({ imports: [RateLimitModule.forRoot(perDay(1, 'app'))], providers: [Chat] })
    class App {}
    const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false, abortOnError: false })
    await app.init()
    await app.close()
  }
  await assert.rejects(started(false), /WebSocket gateway.*@SkipRateLimit\(\) \(got "Chat\.say"\)/)
  await started(true)
})

test('nest: a request of GraphQL counts once and is denied in all of its fields; a field with a limit of its own counts each call', async (t) => {
  const guard = new RateLimitGuard(perDay(2))
  const login = (): void => {}
  RateLimit(perDay(2, 'login of GraphQL'))({}, 'login', { value: login } as never)
  const answers: number[] = []
  const errors: unknown[] = []
  const warned: string[] = []
  const listen = ({ message }: Error): void => void (message.includes('login of GraphQL') && warned.push(message))
  process.on('warning', listen)
  t.after(() => process.off('warning', listen))
  const server = await listening(
    createServer((req, res) => {
      const field = (handler: () => void): ExecutionContext =>
        ({
          getType: () => 'graphql',
          getHandler: () => handler,
          getClass: () => Object,
          getArgByIndex: () => ({ req: Object.assign(req, { originalUrl: req.url }), res }),
        }) as unknown as ExecutionContext
      const hello = (): void => {}
      const fields = req.url === '/login' ? [login, login, login] : [hello, hello]
      for (const handler of fields) {
        try {
          guard.canActivate(field(handler))
          answers.push(200)
        } catch (error) {
          errors.push(error)
          answers.push((error as Partial<HttpException>).getStatus?.() ?? 500)
        }
      }
      res.end()
    }),
  )
  t.after(() => server.close())
  const headers: boolean[] = []
  for (const path of ['/', '/', '/', '/login']) {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { signal: AbortSignal.timeout(10_000) })
    headers.push(response.headers.has('ratelimit'))
  }
  for (const error of errors) {
    assert.equal(new RateLimitFilter().catch(error as never, { getType: () => 'graphql' } as never), error)
    const { message, extensions } = error as RateLimitException
    assert.equal(message, 'Quota exceeded')
    assert.deepEqual(extensions, { code: 'TOO_MANY_REQUESTS' })
  }
  assert.deepEqual(warned, [], 'each call of a field is meant to count')
  assert.deepEqual(answers, [200, 200, 200, 200, 429, 429, 200, 200, 429])
  assert.deepEqual(headers, [true, true, true, true])
})

test('nest: the module names guard and filter as Nest does', () => {
  const { providers = [] } = RateLimitModule.forRoot(perDay(1))
  const tokens = providers.map((provider) => ('provide' in provider ? provider.provide : provider))
  assert.ok(tokens.includes(APP_GUARD) && tokens.includes(APP_FILTER))
})
