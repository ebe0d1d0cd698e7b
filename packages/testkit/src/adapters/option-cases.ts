import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow, type Policy, tokenBucket } from '../../../sluicegate/dist/index.js'
import { address, apiKey, compose, header, method } from '../../../sluicegate/dist/keys/index.js'
import type { Denial } from '../../../sluicegate/dist/middleware/denial.js'
import { shortOrLong } from '../run-length.js'
import { unhandledRejections } from '../unhandled-rejections.js'
import type { Harness, StartApp } from './harness.js'
import { promisedLimiter } from './harness.js'
import { ask } from './http-client.js'

const perDay = (limit: number, name = 'day'): Policy => fixedWindow({ limit, window: 'day', name })

/** What the options do, by the framework's own request. */
export function optionCases<Request>({ name, header: headerOf }: Harness<Request>, start: StartApp<Request>): void {
  const userOf = (request: Request): string | undefined => headerOf(request, 'x-user')
  const as = (user: string): { headers: Record<string, string> } => ({ headers: { 'x-user': user } })

  test(`${name}: a key may be made of the framework's request, at once or later, or of facts`, async (t) => {
    const byFacts = compose(header('x-user'), method())
    for (const key of [userOf, async (request: Request) => userOf(request), byFacts]) {
      const { port } = await start(t, { all: { policy: perDay(1), key } })
      const replies = [await ask(port, '/ok', as('ada')), await ask(port, '/ok', as('ada')), await ask(port, '/ok', as('bob'))]
      assert.deepEqual(
        replies.map(({ status }) => status),
        [200, 429, 200],
      )
    }
  })

  test(`${name}: a key whose function throws goes to the framework's own error handling`, async (t) => {
    const thrown = (): never => {
      throw new Error('no such session')
    }
    for (const key of [thrown, async () => thrown()]) {
      const { port, site } = await start(t, { all: { policy: perDay(5), key } })
      const { status, text } = await ask(port, '/ok')
      assert.equal(status, 500)
      assert.match(text, /no such session/)
      assert.equal(site.errors.length, 1)
      assert.equal(site.handled, 0)
    }
  })

  test(`${name}: a function that fails with a value that is not an error fails its request, which is answered`, async (t) => {
    for (const value of [undefined, 'route', null, 0].slice(0, shortOrLong(2, 4))) {
      const failing = [
        () => {
          throw value
        },
        () => Promise.reject(value),
      ]
      for (const key of failing) {
        const { port, site } = await start(t, { all: { policy: perDay(5), key } })
        const { status } = await ask(port, '/ok')
        assert.deepEqual([status, site.handled], [500, 0])
      }
    }
  })

  test(`${name}: a header whose name every object has is there when a client sends it, and only then`, async (t) => {
    const key = compose(header('constructor', { otherwise: address() }), apiKey({ header: '__proto__', otherwise: method() }))
    const { port, site } = await start(t, { all: { policy: perDay(1), key } })
    const statuses = []
    for (const headers of [{}, {}, { constructor: 'ada' }, { constructor: 'ada' }] as Record<string, string>[]) {
      statuses.push((await ask(port, '/ok', { headers })).status)
    }
    assert.deepEqual([statuses, site.errors], [[200, 429, 200, 429], []])
  })

  test(`${name}: requests take their cost, and an impossible cost is reported`, async (t) => {
    const cost = (request: Request): number => Number(headerOf(request, 'x-cost') ?? 1)
    const { port } = await start(t, { all: { policy: tokenBucket({ limit: 5, window: '1h' }), cost } })
    const costing = (tokens: number) => ask(port, '/ok', { headers: { 'x-cost': String(tokens) } })
    const impossible = await costing(6)
    assert.deepEqual([impossible.status, impossible.headers['retry-after']], [422, undefined])
    assert.deepEqual(
      [(await costing(3)).status, (await costing(3)).status, (await costing(0)).status, (await costing(2)).status],
      [200, 429, 200, 200],
    )
  })

  test(`${name}: what is skipped passes uncounted and untold`, async (t) => {
    const { port } = await start(t, { all: { policy: perDay(1), skip: (request) => userOf(request) === 'health' } })
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await ask(port, '/ok', as('health'))
      assert.deepEqual([status, headers.ratelimit], [200, undefined])
    }
    assert.deepEqual([(await ask(port, '/ok')).status, (await ask(port, '/ok')).status], [200, 429])
  })

  test(`${name}: in shadow mode all requests pass, headers show nothing, and onDenied is called`, async (t) => {
    const seen: Denial[] = []
    const { port } = await start(t, {
      all: { policy: perDay(1), shadow: true, onDenied: (denial) => void seen.push(denial) },
    })
    for (let i = 0; i < 3; i++) {
      const { status, headers } = await ask(port, '/ok')
      assert.deepEqual([status, headers['ratelimit-policy']], [200, undefined])
    }
    assert.deepEqual(
      seen.map(({ kind, shadow }) => [kind, shadow]),
      [
        ['denied', true],
        ['denied', true],
      ],
    )
  })

  test(`${name}: onDenied may change status, headers and body, and each cookie has a line of its own`, async (t) => {
    const { port } = await start(t, {
      all: {
        policy: perDay(1),
        onDenied: (_, request) => ({
          status: 420,
          headers: [
            ['X-Calm', userOf(request) ?? ''],
            ['Set-Cookie', 'a=1'],
            ['Set-Cookie', 'b=2'],
          ],
          body: { enhance: 'your calm' },
        }),
      },
    })
    await ask(port, '/ok')
    const { status, headers, text } = await ask(port, '/ok', as('ada'))
    assert.deepEqual([status, headers['x-calm'], headers['set-cookie']], [420, 'ada', ['a=1', 'b=2']])
    assert.match(headers['content-type'] ?? '', /^application\/json/)
    assert.deepEqual(JSON.parse(text), { enhance: 'your calm' })
  })

  test(`${name}: a body that is not what its type says is sent as it is`, async (t) => {
    const { port, site } = await start(t, {
      all: { policy: perDay(1), body: () => ({ type: 'application/json', text: 'calm down' }) },
    })
    await ask(port, '/ok')
    const { status, headers, text } = await ask(port, '/ok')
    assert.deepEqual([status, text], [429, 'calm down'])
    assert.match(headers['content-type'] ?? '', /^application\/json/)
    assert.deepEqual(site.errors, [])
  })

  test(`${name}: what onDenied throws goes to the framework's own error handling, and the request no further`, async (t) => {
    const thrown = (): never => {
      throw new Error('no such hook')
    }
    for (const onDenied of [thrown, async () => thrown()]) {
      const { port, site } = await start(t, { all: { policy: perDay(1), onDenied } })
      await ask(port, '/ok')
      const { status, text } = await ask(port, '/ok')
      assert.equal(status, 500)
      assert.match(text, /no such hook/)
      assert.deepEqual([site.errors.length, site.handled], [1, 1])
    }
  })

  test(`${name}: what onDenied makes of a request and HTTP does not take goes to the framework's own error handling`, async (t) => {
    const limiter = createLimiter(perDay(1))
    for (const all of [limiter, promisedLimiter(limiter)]) {
      const { port, site } = await start(t, {
        all: {
          limiter: all,
          onDenied: (_, request) => ({ headers: [['X-Asked', decodeURIComponent(headerOf(request, 'x-q') ?? '')]] }),
        },
      })
      limiter.take('127.0.0.1')
      const reasons = await unhandledRejections(async () => {
        for (const q of ['%0a', '%E2%82%AC']) {
          const { status, headers } = await ask(port, '/ok', { headers: { 'x-q': q } })
          assert.deepEqual([status, headers['x-asked']], [500, undefined])
        }
      })
      assert.deepEqual([site.errors.length, reasons], [2, []])
    }
  })

  test(`${name}: the body may be text, and the headers of another version`, async (t) => {
    const { port } = await start(t, { all: { policy: perDay(1), body: 'text', headers: 'x-ratelimit' } })
    const passed = await ask(port, '/ok')
    assert.deepEqual([passed.headers['x-ratelimit-limit'], passed.headers['x-ratelimit-remaining']], ['1', '0'])
    const { status, headers, text } = await ask(port, '/ok')
    assert.equal(status, 429)
    assert.match(headers['content-type'] ?? '', /^text\/plain; charset=utf-8/)
    assert.match(text, /^Quota exceeded\. Try again in \d+ seconds?\.\n$/)
  })

  test(`${name}: several limits at once charge all or none`, async (t) => {
    const user = createLimiter(perDay(2, 'user'))
    const all = createLimiter(perDay(3, 'all'))
    const limits = [{ limiter: user, key: userOf }, { limiter: all }]
    const { port } = await start(t, { all: { limits } })
    const first = await ask(port, '/ok', as('ada'))
    assert.match(String(first.headers['ratelimit-policy']), /"user";.*"all";/)
    await ask(port, '/ok', as('ada'))
    const denied = await ask(port, '/ok', as('ada'))
    assert.deepEqual(JSON.parse(denied.text)['violated-policies'], ['user'])
    assert.equal((await ask(port, '/ok', as('bob'))).status, 200)
    const byAll = await ask(port, '/ok', as('bob'))
    assert.deepEqual([byAll.status, JSON.parse(byAll.text)['violated-policies']], [429, ['all']])
    assert.equal(user.peek('bob').remaining, 1)
  })

  test(`${name}: a route has a limit of its own`, async (t) => {
    const { port } = await start(t, { all: perDay(5, 'all'), strict: perDay(1, 'strict') })
    const strict = await ask(port, '/strict')
    assert.equal(strict.status, 200)
    assert.match(String(strict.headers['ratelimit-policy']), /"strict"/)
    assert.equal((await ask(port, '/strict')).status, 429)
    assert.equal((await ask(port, '/ok')).status, 200)
  })

  test(`${name}: a route alone is limited where nothing else is`, async (t) => {
    const { port } = await start(t, { strict: { policy: perDay(1), key: userOf } })
    const asked = [await ask(port, '/strict', as('ada')), await ask(port, '/strict', as('ada')), await ask(port, '/strict', as('bob'))]
    assert.deepEqual(
      asked.map(({ status }) => status),
      [200, 429, 200],
    )
    const open = await ask(port, '/ok')
    assert.deepEqual([open.status, open.headers['ratelimit-policy']], [200, undefined])
  })

  test(`${name}: a tier of users has a policy of its own`, async (t) => {
    const pro = perDay(3, 'pro')
    const limiter = createLimiter(perDay(1, 'free'), { policyFor: (user) => (user.startsWith('pro') ? pro : undefined), policies: [pro] })
    const { port } = await start(t, { all: { limiter, key: userOf } })
    const statuses = async (user: string): Promise<number[]> => {
      const asked = []
      for (let i = 0; i < 4; i++) asked.push((await ask(port, '/ok', as(user))).status)
      return asked
    }
    assert.deepEqual(
      [await statuses('ada'), await statuses('pro bob')],
      [
        [200, 429, 429, 429],
        [200, 200, 200, 429],
      ],
    )
  })
}
