import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from 'sluicegate'
import { rawExchange } from 'sluicegate-testkit/service/many-connections.js'
import { readRateLimitFields } from 'sluicegate-testkit/service/rate-limit-fields.js'
import { atOnce, runService } from 'sluicegate-testkit/service/running-service.js'

const AUTH = '/v1/auth?policy=spaced&key=alice'

test('204 lets a request pass and 403 does not, both with the RateLimit fields and no body', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  const first = await fetch(url + AUTH)
  assert.deepEqual([first.status, first.headers.get('cache-control'), first.headers.has('retry-after')], [204, 'no-store', false])
  readRateLimitFields(first.headers)
  const second = await fetch(url + AUTH)
  assert.deepEqual([second.status, await second.text(), second.headers.get('retry-after')], [403, '', '1'])
  assert.equal(readRateLimitFields(second.headers).name, 'spaced')
})

test('for a gateway that writes no key it comes from X-Real-Ip, and 429 in place of 403', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const ask = (query: string, headers: Record<string, string> = {}) => fetch(`${url}/v1/auth?${query}`, { headers })
  const address = { 'x-real-ip': '192.0.2.1', 'x-sluicegate-key': 'chosen by the client' }
  // More than the requests of a connection that Node's parser reads.
  for (let i = 0; i < 5; i++) assert.equal((await ask('policy=burst&key-header=x-real-ip', address)).status, 204)
  assert.equal(atOnce(engine.policy('burst')?.peek('192.0.2.1', 1)).remaining, 95)
  assert.equal(atOnce(engine.policy('burst')?.peek('chosen by the client', 1)).remaining, 100)
  await ask('policy=spaced&key=a&denied=429')
  const denied = await ask('policy=spaced&key=a&denied=429')
  assert.deepEqual([denied.status, denied.headers.get('retry-after')], [429, '1'])
  for (const query of ['key-header=cookie', 'key=a&denied=500']) assert.equal((await ask(`policy=burst&${query}`)).status, 400, query)
})

test('200 addresses of one /64 are one client, wherever a gateway writes them; a key that is no address is taken as it is', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const left = (key: string) => atOnce(engine.policy('burst')?.peek(key, 1)).remaining
  const ask = async (query: string, headers: Record<string, string> = {}) =>
    assert.equal((await fetch(`${url}/v1/auth?policy=burst&${query}`, { headers })).status, 204)
  const addresses = Array.from({ length: 20 }, (_, i) => `2001:db8:0:4217::${i.toString(16)}`)
  for (const address of addresses) await ask('key-header=x-real-ip', { 'x-real-ip': address })
  for (const address of addresses) await ask('', { 'x-sluicegate-key': `[${address}]:40001` })
  for (const address of addresses) await ask(`key=${encodeURIComponent(address)}`)
  assert.equal(left('2001:db8:0:4200::/56'), 40)
  await ask('ipv6-subnet=64', { 'x-sluicegate-key': addresses[0] as string })
  await ask('', { 'x-sluicegate-key': '203.0.113.7:40001' })
  for (const name of ['cafe::1', 'user:7', '00:11:22:33:44:55:66:77']) await ask('', { 'x-sluicegate-key': name })
  for (const key of ['2001:db8:0:4217::/64', '203.0.113.7', 'cafe::1', 'user:7', '00:11:22:33:44:55:66:77'])
    assert.equal(left(key), 99, key)
  assert.equal((await fetch(`${url}/v1/auth?policy=burst&key=a&ipv6-subnet=8`)).status, 400)
})

test('a request without a key receives 401, which a gateway passes on, or what missing-key says', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const ask = (query: string) => fetch(`${url}/v1/auth?policy=burst${query}`, { headers: { 'x-sluicegate-key': '' } })
  for (const query of ['', '&missing-key=deny', '&key=', '&key-header=x-real-ip']) {
    const denied = await ask(query)
    const { code } = (await denied.json()) as { code: string }
    assert.deepEqual([denied.status, denied.headers.get('www-authenticate'), code], [401, 'ApiKey', 'KEY_MISSING'], query)
  }
  const skipped = await ask('&missing-key=skip')
  assert.deepEqual([skipped.status, skipped.headers.has('ratelimit')], [204, false])
  assert.equal((await ask('&missing-key=anonymous')).status, 204)
  assert.equal(atOnce(engine.policy('burst')?.peek('anonymous', 1)).remaining, 99)
})

test('an impossible cost is 403 without Retry-After', async (t) => {
  const { url } = await runService(t)
  const response = await fetch(`${url}${AUTH}&cost=2`)
  assert.deepEqual([response.status, response.headers.has('retry-after')], [403, false])
})

test('policy, key and cost can come in headers', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const headers = { 'x-sluicegate-policy': 'burst', 'x-sluicegate-key': 'alice', 'x-sluicegate-cost': '40' }
  assert.equal((await fetch(`${url}/v1/auth`, { headers })).status, 204)
  assert.equal(atOnce(engine.policy('burst')?.peek('alice', 1)).remaining, 60)
})

test('a header never overrides the query string', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  await fetch(url + AUTH, { headers: { 'x-sluicegate-key': 'another-key', 'x-sluicegate-policy': 'burst' } })
  assert.equal(atOnce(engine.policy('spaced')?.peek('alice', 1)).allowed, false)
  assert.equal(engine.policy('burst')?.counts.allowed, 0)
})

test('a key in a header is UTF-8, the same key as in a query string', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const head = 'GET /v1/auth?policy=spaced HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Sluicegate-Key: '
  const { status } = await rawExchange(url, Buffer.from(`${head}zoë\r\n\r\n`, 'utf8'))
  assert.equal(status, 204)
  assert.equal(atOnce(engine.policy('spaced')?.peek('zoë', 1)).allowed, false)
  const latin = await rawExchange(url, Buffer.from(`${head}zoë\r\n\r\n`, 'latin1'))
  assert.equal(latin.status, 400)
})

test('a header given twice is refused', async (t) => {
  const { url } = await runService(t)
  const request =
    'GET /v1/auth?policy=spaced HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Sluicegate-Key: a\r\nX-Sluicegate-Key: b\r\n\r\n'
  assert.equal((await rawExchange(url, request)).status, 400)
})

test('a byte order mark is part of a key, in a header as in a query string', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const request = 'GET /v1/auth?policy=spaced HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Sluicegate-Key: \ufeffalice\r\n\r\n'
  assert.equal((await rawExchange(url, request)).status, 204)
  assert.deepEqual(
    ['alice', '\ufeffalice'].map((key) => atOnce(engine.policy('spaced')?.peek(key, 1)).allowed),
    [true, false],
  )
})

test('a large number of headers hides neither the one that counts nor its repetition', async (t) => {
  const { url } = await runService(t, undefined, { clock: manualClock(0) })
  const crowd = Array.from({ length: 2_100 }, (_, i) => `${i.toString(36)}:\r\n`).join('')
  const head = `GET /v1/auth?policy=spaced HTTP/1.1\r\nHost: x\r\nConnection: close\r\n`
  assert.equal((await rawExchange(url, `${head}${crowd}X-Sluicegate-Key: a\r\n\r\n`)).status, 204)
  assert.equal((await rawExchange(url, `${head}X-Sluicegate-Key: b\r\n${crowd}X-Sluicegate-Key: a\r\n\r\n`)).status, 400)
})

test('a page of another site cannot take tokens here either, but a gateway may forward its Sec-Fetch-Site', async (t) => {
  const { url, engine } = await runService(t, undefined, { clock: manualClock(0) })
  const crossSite = { 'sec-fetch-site': 'cross-site' }
  const page = await fetch(url + AUTH, { headers: crossSite })
  const { code } = (await page.json()) as { code: string }
  assert.deepEqual([page.status, code], [403, 'CROSS_SITE'])
  assert.equal(atOnce(engine.policy('spaced')?.peek('alice', 1)).allowed, true)
  for (const gateway of [{ 'x-forwarded-for': '192.0.2.1' }, { 'x-sluicegate-key': 'bob' }]) {
    const query = 'x-sluicegate-key' in gateway ? '?policy=spaced' : '?policy=spaced&key=alice'
    assert.equal((await fetch(`${url}/v1/auth${query}`, { headers: { ...crossSite, ...gateway } })).status, 204)
  }
})
