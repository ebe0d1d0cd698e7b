import assert from 'node:assert/strict'
import { constants } from 'node:http2'
import { test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { askHttp2, HTTP2_APPS, openHttp2 } from 'sluicegate-testkit/adapters/http2-apps.js'
import { concurrency, createLimiter, fixedWindow } from '../index.js'

const KEY = '127.0.0.1'

for (const [name, start] of Object.entries(HTTP2_APPS)) {
  test(`${name}: limits hold over HTTP/2 as well, and places come back`, async (t) => {
    const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
    const policy = fixedWindow({ name: 'day', limit: 2, window: 'day' })
    const { port, close } = await start({ limits: [{ limiter: slots }, { policy }] }, async () => `${slots.peek(KEY).remaining} left`)
    t.after(close)
    for (const remaining of [1, 0]) {
      const { status, headers, text } = await askHttp2(port, '/')
      assert.deepEqual([status, text], [200, '0 left'])
      assert.match(String(headers.ratelimit), new RegExp(`"day";r=${remaining}`))
      await until('the place is back', () => slots.peek(KEY).remaining === 1)
    }
    const { status, headers, text } = await askHttp2(port, '/')
    assert.deepEqual([status, JSON.parse(text)['violated-policies']], [429, ['day']])
    assert.match(headers['content-type'] ?? '', /^application\/problem\+json/)
  })

  for (const [how, code] of [
    ['its stream was cancelled', constants.NGHTTP2_CANCEL],
    ['its stream was reset without an error', constants.NGHTTP2_NO_ERROR],
    ['its session was destroyed', undefined],
  ] as const) {
    test(`${name}: over HTTP/2 a request counts, whatever status it had by then, when ${how}`, async (t) => {
      const slots = createLimiter(concurrency({ name: 'slots', limit: 1 }))
      const failures = createLimiter(fixedWindow({ limit: 3, window: 'day' }))
      let begun = 0
      let goOn = (): void => undefined
      const gate = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const reply = async (): Promise<string> => {
        if (++begun === 1) await gate
        return 'ok'
      }
      const { port, close } = await start({ limits: [{ limiter: slots }, { limiter: failures }], counts: 'failures' }, reply)
      t.after(close)
      const request = openHttp2(port, '/')
      await until('it has begun', () => begun === 1)
      assert.equal(slots.peek(KEY).remaining, 0)
      request.hangUp(code)
      await until('the place is back', () => slots.peek(KEY).remaining === 1)
      assert.equal(failures.peek(KEY).remaining, 2)
      goOn()
      assert.equal((await askHttp2(port, '/')).status, 200)
      await until('what succeeded does not count', () => failures.peek(KEY).remaining === 2)
    })
  }
}
