import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow, type Policy } from '../../../sluicegate/dist/index.js'
import type { Harness } from './harness.js'
import { ask } from './http-client.js'
import type { StartApp } from './listening.js'
import { promisedLimiter } from './promised-limiter.js'

const perDay = (limit: number, name: string): Policy => fixedWindow({ limit, window: 'day', name })

/** Limits whose policy is chosen for each request. */
export function policyCases<Request>({ name, header: headerOf }: Harness<Request>, start: StartApp<Request>): void {
  const userOf = (request: Request): string | undefined => headerOf(request, 'x-user')
  const as = (user: string, plan = 'free'): { headers: Record<string, string> } => ({ headers: { 'x-user': user, 'x-plan': plan } })
  // Made again for each request.
  const planOf = (request: Request): Policy => (headerOf(request, 'x-plan') === 'pro' ? perDay(3, 'pro') : perDay(1, 'free'))

  test(`${name}: the policy may be a function of the request, at once or later, and headers tell the one that answered`, async (t) => {
    for (const policy of [planOf, async (request: Request) => planOf(request)]) {
      const { port } = await start(t, { all: { policy, key: userOf } })
      const replies = []
      for (const [user, plan] of [
        ['ada', 'free'],
        ['ada', 'free'],
        ['bob', 'pro'],
        ['bob', 'pro'],
        ['ada', 'pro'],
      ] as const) {
        const { status, headers } = await ask(port, '/ok', as(user, plan))
        replies.push([status, String(headers['ratelimit-policy']).split(';')[0], String(headers.ratelimit).split(';')[1]])
      }
      assert.deepEqual(replies, [
        [200, '"free"', 'r=0'],
        [429, '"free"', 'r=0'],
        [200, '"pro"', 'r=2'],
        [200, '"pro"', 'r=1'],
        [200, '"pro"', 'r=2'],
      ])
    }
  })

  test(`${name}: a limiter may be made for each policy, once`, async (t) => {
    const made: string[] = []
    const limiter = (policy: Policy) => {
      made.push(policy.name)
      return promisedLimiter(createLimiter(policy))
    }
    const { port } = await start(t, { all: { policy: planOf, limiter, key: userOf } })
    const statuses = []
    for (const plan of ['free', 'free', 'pro', 'pro', 'pro', 'pro', 'free']) statuses.push((await ask(port, '/ok', as('ada', plan))).status)
    assert.deepEqual(statuses, [200, 429, 200, 200, 200, 429, 429])
    assert.deepEqual(made, ['free', 'pro'])
  })

  test(`${name}: a policy that cannot be found goes to the framework's own error handling`, async (t) => {
    const none = (): Policy => undefined as never
    const fails = (): never => {
      throw new Error('no such plan')
    }
    for (const [policy, message] of [
      [none, /returned no policy/],
      [fails, /no such plan/],
      [async () => fails(), /no such plan/],
    ] as const) {
      const { port, site } = await start(t, { all: { policy, key: userOf } })
      const { status, text } = await ask(port, '/ok', as('ada'))
      assert.equal(status, 500)
      assert.match(text, message)
      assert.deepEqual([site.errors.length, site.handled], [1, 0])
    }
  })
}
