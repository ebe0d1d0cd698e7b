import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { concurrency, createLimiter, fixedWindow, type Limiter } from '../../../sluicegate/dist/index.js'
import { until } from '../servers/until.js'
import type { Harness, StartApp } from './harness.js'
import { ask, openRequest, pipeline } from './http-client.js'

/** The key of all requests here. */
const KEY = '127.0.0.1'

/** What becomes of a charge when the response has ended, or never will. */
export function endingCases<Request>({ name, seesNode }: Harness<Request>, start: StartApp<Request>): void {
  const tokens = (t: TestContext, limit: number): Limiter => {
    const limiter = createLimiter(fixedWindow({ limit, window: 'day' }))
    t.after(() => limiter.close())
    return limiter
  }
  const remaining = (limiter: Limiter, count: number): Promise<void> =>
    until(`${count} remain`, () => limiter.peek(KEY).remaining === count)

  test(`${name}: only failures count, or only successes`, async (t) => {
    for (const [counts, free, charged] of [
      ['failures', '/status/200', '/status/500'],
      ['successes', '/status/404', '/status/201'],
    ] as const) {
      const limiter = tokens(t, 2)
      const { port } = await start(t, { all: { limiter, counts } })
      for (let i = 0; i < 4; i++) {
        assert.notEqual((await ask(port, free)).status, 429)
        await remaining(limiter, 2)
      }
      for (let i = 0; i < 2; i++) await ask(port, charged)
      await remaining(limiter, 0)
      assert.equal((await ask(port, free)).status, 429)
    }
  })

  test(`${name}: what a handler throws is a failure, answered by the framework, and its headers stay`, async (t) => {
    const limiter = tokens(t, 1)
    const { port, site } = await start(t, { all: { limiter, counts: 'failures' } })
    const { status, text, headers } = await ask(port, '/throws')
    assert.deepEqual([status, text.includes('thrown by a handler')], [500, true])
    assert.match(String(headers.ratelimit), /r=0/)
    assert.equal(site.errors.length, 1)
    assert.equal((await ask(port, '/ok')).status, 429)
  })

  test(`${name}: a response that streams holds its place until its end, and arrives whole`, async (t) => {
    const limiter = createLimiter(concurrency({ limit: 1 }))
    const { port, site } = await start(t, { all: limiter })
    site.shut()
    const streaming = ask(port, '/stream')
    await until('it has begun', () => limiter.peek(KEY).remaining === 0)
    assert.equal((await ask(port, '/ok')).status, 429)
    site.open()
    const { status, text } = await streaming
    assert.deepEqual([status, text], [200, 'first second third'])
    await remaining(limiter, 1)
    assert.equal((await ask(port, '/ok')).status, 200)
  })

  for (const path of ['/stream', '/slow']) {
    test(`${name}: a client that is gone half-way through ${path} gives its place back, and counts`, async (t) => {
      const slots = createLimiter(concurrency({ limit: 1, name: 'slots' }))
      const counted = tokens(t, 3)
      const { port, site } = await start(t, { all: { limits: [{ limiter: slots }, { limiter: counted }], counts: 'failures' } })
      site.shut()
      const request = openRequest(port, path)
      await until('it has begun', () => site.handled === 1)
      if (path === '/stream') assert.equal(await request.begun, 'first ')
      assert.deepEqual([slots.peek(KEY).remaining, counted.peek(KEY).remaining], [0, 2])
      request.hangUp()
      // A handler that does not learn of the disconnect runs to its end.
      if (path === '/slow') setTimeout(() => site.open(), 500)
      await remaining(slots, 1)
      site.open()
      assert.equal(counted.peek(KEY).remaining, 2)
      assert.equal((await ask(port, '/ok')).status, 200)
      assert.deepEqual(site.errors, [])
    })
  }

  // Of responses that wait behind others only Node's own tell.
  if (seesNode) {
    test(`${name}: of a client that is gone all requests of its connection count, and give their places back`, async (t) => {
      const slots = createLimiter(concurrency({ limit: 3, name: 'slots' }))
      const counted = tokens(t, 3)
      const { port, site } = await start(t, { all: { limits: [{ limiter: slots }, { limiter: counted }], counts: 'failures' } })
      site.shut()
      const hangUp = pipeline(port, '/slow', 3)
      await until('all have begun', () => site.handled === 3)
      assert.equal(slots.peek(KEY).remaining, 0)
      hangUp()
      await remaining(slots, 3)
      assert.equal(counted.peek(KEY).remaining, 0)
      site.open()
    })
  }

  for (const [moment, optionOf] of [
    ['its limit is asked', (wait: () => Promise<void>) => ({ before: wait })],
    ['its key is known', (wait: () => Promise<void>) => ({ skip: () => wait().then(() => false) })],
  ] as const) {
    test(`${name}: a client that is gone before ${moment} is not served, and no error`, async (t) => {
      // A place for each: the one that is gone holds its own for a moment.
      const limiter = createLimiter(concurrency({ limit: 2 }))
      let came = 0
      let goOn = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const wait = (): Promise<void> => {
        came++
        return gate
      }
      const { before, skip } = { before: undefined, skip: undefined, ...optionOf(wait) }
      const { port, site } = await start(t, { all: { limiter, ...(skip && { skip }) }, ...(before && { before }) })
      const request = openRequest(port, '/ok')
      await until('it has come', () => came === 1)
      request.hangUp()
      // The server hears of a hang-up no later than of what is asked afterwards.
      const next = ask(port, '/ok')
      await until('the next has come', () => came === 2)
      goOn()
      assert.equal((await next).status, 200)
      await remaining(limiter, 2)
      assert.equal(site.handled, 1)
      assert.deepEqual(site.errors, [])
    })
  }
}
