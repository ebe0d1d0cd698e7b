import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fixedWindow } from '../../../sluicegate/dist/index.js'
import { until } from '../servers/until.js'
import type { Harness } from './harness.js'
import { ask, openRequest } from './http-client.js'
import type { StartApp } from './listening.js'

/** Requests that are delayed before they go on, and clients that are banned. */
export function delayCases<Request>({ name }: Harness<Request>, start: StartApp<Request>): void {
  test(`${name}: requests above the threshold are delayed, then pass; a client that disconnects frees its place`, async (t) => {
    const day = fixedWindow({ limit: 100, window: 'day', name: 'day' })
    let ms = 3_600_000
    let delays = 0
    const delay = (): number => {
      delays++
      return ms
    }
    const slowDown = { after: 1, delay, maxDelay: '1h', maxDelayedPerKey: 1 } as const
    const { port, site } = await start(t, { all: { policy: day, slowDown } })
    assert.equal((await ask(port, '/ok')).status, 200)
    assert.equal(delays, 0)
    const delayed = openRequest(port, '/ok')
    await until('it is delayed', () => delays === 1)
    const refused = await ask(port, '/ok')
    assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '3600'])
    assert.equal(site.handled, 1)
    delayed.hangUp()
    ms = 1
    await until('its place is free', async () => (await ask(port, '/ok')).status === 200)
    const { status, headers } = await ask(port, '/ok')
    assert.equal(status, 200)
    assert.match(String(headers.ratelimit), /r=9[67]/)
    assert.ok(delays > 2)
  })

  test(`${name}: a client that is denied again and again is banned`, async (t) => {
    const policy = fixedWindow({ limit: 1, window: 'day', name: 'day' })
    const { port } = await start(t, { all: { policy, banAfter: { denials: 2, within: '1m', for: '100d' } } })
    const waits = []
    for (let i = 0; i < 4; i++) waits.push(Number((await ask(port, '/ok')).headers['retry-after'] ?? 0) > 86_400)
    assert.deepEqual(waits, [false, false, true, true])
  })
}
