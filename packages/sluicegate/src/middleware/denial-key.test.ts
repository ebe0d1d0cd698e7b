import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type PlainRequest, plainFacts, statusOf } from 'sluicegate-testkit/adapters/http-client.js'
import { allOf, createLimiter, fixedWindow, manualClock, PolicyError } from '../index.js'
import type { Key } from '../limiter.js'
import { Middleware } from './middleware.js'
import type { MiddlewareOptions } from './middleware-options.js'

const clock = manualClock()
const perDay = (limit: number, name: string) => createLimiter(fixedWindow({ limit, window: 'day', name }), { clock })

function keysOf(options: MiddlewareOptions<PlainRequest>): Key[] {
  const keys: Key[] = []
  const middleware = new Middleware<PlainRequest>({ ...options, onDenied: ({ key }) => void keys.push(key) })
  const request = { user: 'ada' }
  for (let i = 0; i < 2; i++) middleware.handle(plainFacts(request), request)
  return keys
}

test('onDenied gets the key that was counted, of several limits that of the one that denies, also in shadow mode', () => {
  const byUser = ({ user = '' }: PlainRequest): string => `user ${user}`
  assert.deepEqual(keysOf({ limiter: perDay(1, 'a'), key: byUser }), ['user ada'])
  assert.deepEqual(keysOf({ limiter: perDay(1, 'b'), key: byUser, shadow: true }), ['user ada'])
  assert.deepEqual(keysOf({ limits: [{ limiter: perDay(9, 'c') }, { limiter: perDay(1, 'd'), key: byUser }] }), ['user ada'])
  const both = createLimiter(allOf([fixedWindow({ limit: 1, window: 'day' }), fixedWindow({ limit: 9, window: 'day' })]), { clock })
  assert.deepEqual(keysOf({ limiter: both, key: [byUser, () => 'all'] }), [['user ada', 'all']])
})

test('a body that is misspelt, or that JSON cannot hold, is refused as the limit is made', () => {
  const make = (body: MiddlewareOptions<PlainRequest>['body']) =>
    new Middleware<PlainRequest>({ limiter: perDay(1, 'e'), ...(body && { body }) })
  const circular: { self?: object } = {}
  circular.self = circular
  for (const body of ['problm', 'Text', 'html', circular, { big: 1n }, { type: 'a\nb', text: '' }]) {
    assert.throws(
      () => make(body),
      (error) => error instanceof PolicyError && error.option === 'body',
      String(body),
    )
  }
  for (const body of [5, null, Symbol('a')]) {
    const options = { limiter: perDay(1, 'f'), body } as never
    assert.throws(() => new Middleware<PlainRequest>(options), { code: 'OPTION_INVALID', option: 'body' })
  }
  assert.equal(statusOf(make('Try later').handle(plainFacts({}), {}) as never), 200)
})
