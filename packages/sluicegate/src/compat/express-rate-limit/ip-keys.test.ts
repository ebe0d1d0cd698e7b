import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { test } from 'node:test'
import express from 'express'
import { listening } from 'sluicegate-testkit/adapters/harness.js'
import { ask } from 'sluicegate-testkit/adapters/http-client.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { rateLimit } from './index.js'
import { ipKeyGenerator } from './ip-keys.js'
import type { RateLimitOptions } from './rate-limit-options.js'

freshWarnings()

test('an address is its own key, one of IPv6 that of its network', () => {
  assert.equal(ipKeyGenerator('203.0.113.7'), '203.0.113.7')
  assert.equal(ipKeyGenerator('::ffff:203.0.113.7'), '203.0.113.7')
  assert.equal(ipKeyGenerator('203.0.113.7:4711'), '203.0.113.7:4711')
  assert.equal(ipKeyGenerator('2001:db8:0:42ff::1'), '2001:db8:0:4200::/56')
  assert.equal(ipKeyGenerator('2001:db8:0:42ff::1', 64), '2001:db8:0:42ff::/64')
  assert.equal(ipKeyGenerator('2001:db8:0:42ff::1', false), '2001:db8:0:42ff::1')
  assert.equal(ipKeyGenerator('2001:db8:0:42ff::1', 0), '2001:db8:0:42ff::1')
  assert.equal(ipKeyGenerator('user-7'), 'user-7')
  assert.equal(ipKeyGenerator(undefined as never), undefined)
  assert.equal(ipKeyGenerator('203.0.113.7', 16), '203.0.113.7')
  for (const bits of [-1, 129, 56.5, 'many']) {
    assert.throws(() => ipKeyGenerator('2001:db8::1', bits as number), { code: 'OPTION_INVALID', option: 'ipv6Subnet' })
  }
})

interface Site {
  readonly trust?: unknown
  readonly options?: RateLimitOptions
  readonly forwarded?: string
}

/** The key that a request is counted for, or what went wrong. */
async function keyOf({ trust, options = {}, forwarded }: Site): Promise<string> {
  const app = express()
  if (trust !== undefined) app.set('trust proxy', trust)
  app.use(rateLimit(options))
  app.get('/', (request, response) => void response.send((request as never as { rateLimit: { key: string } }).rateLimit.key))
  app.use((error: { code: string }, _request: express.Request, response: express.Response, _next: express.NextFunction) => {
    response.status(500).send(error.code)
  })
  const { port, close } = await listening(createServer(app))
  const { text } = await ask(port, '/', forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } })
  await close()
  return text
}

test('a client is the one that Express finds by its setting for proxies', async () => {
  assert.equal(await keyOf({}), '127.0.0.1')
  assert.equal(await keyOf({ trust: 1, forwarded: '6.6.6.6, 203.0.113.7' }), '203.0.113.7')
  assert.equal(await keyOf({ trust: 1, forwarded: '2001:db8:0:42ff::1' }), '2001:db8:0:4200::/56')
  assert.equal(await keyOf({ trust: 'loopback', forwarded: '203.0.113.7:5000' }), '203.0.113.7')
})

test('where a proxy names no address the socket has to do', async () => {
  assert.equal(await keyOf({ trust: 1, forwarded: 'unknown' }), '127.0.0.1')
})

/** Codes of the warnings that are about this while `use` runs. */
async function warningsOf(about: RegExp, use: () => Promise<void>): Promise<unknown[]> {
  const warned: unknown[] = []
  const listen = ({ code, message }: Error & { code?: string }): unknown => about.test(message) && warned.push(code)
  process.on('warning', listen)
  await use()
  // They come in a turn of their own.
  await new Promise(setImmediate)
  process.off('warning', listen)
  return warned
}

test('what validate turns off is not warned of', async () => {
  const forwarded = '6.6.6.6'
  const whole: RateLimitOptions = { keyGenerator: ({ ip }) => ip }
  const warned = await warningsOf(/trust proxy|ipKeyGenerator/, async () => {
    for (const validate of [false, { trustProxy: false }, { default: false }]) {
      assert.equal(await keyOf({ trust: true, forwarded, options: { validate } }), forwarded)
    }
    assert.equal(await keyOf({ trust: false, forwarded, options: { validate: { xForwardedForHeader: false } } }), '127.0.0.1')
    const options = { ...whole, validate: { keyGeneratorIpFallback: false } }
    assert.equal(await keyOf({ trust: 1, forwarded: '2001:db8::1', options }), '2001:db8::1')
  })
  assert.deepEqual(warned, [])
})

test('an app that trusts every proxy is warned of once, and requests are counted by the address of Express', async () => {
  const warned = await warningsOf(/trust proxy/, async () => {
    assert.equal(await keyOf({ trust: true, options: { keyGenerator: () => 'own' } }), 'own')
    for (const forwarded of ['6.6.6.6', '7.7.7.7']) assert.equal(await keyOf({ trust: true, forwarded }), forwarded)
    assert.equal(await keyOf({ trust: true }), '127.0.0.1')
  })
  assert.deepEqual(warned, ['SLUICEGATE_PROXY_ANYBODY'])
})

test('an address is one key in all its spellings, also where the whole of it counts', async () => {
  for (const forwarded of ['2001:DB8:0:0::1', '[2001:db8::1]:4711', '2001:db8::1']) {
    assert.equal(await keyOf({ trust: 1, forwarded, options: { ipv6Subnet: false } }), '2001:db8::1')
  }
})

test('an app that trusts no proxy, though one may be there, is warned of once', async () => {
  const warned: unknown[] = []
  const listen = ({ code, message }: Error & { code?: string }): unknown => /trust proxy/.test(message) && warned.push(code)
  process.on('warning', listen)
  for (let i = 0; i < 3; i++) assert.equal(await keyOf({ forwarded: '6.6.6.6' }), '127.0.0.1')
  process.off('warning', listen)
  assert.deepEqual(warned, ['SLUICEGATE_PROXY_UNTRUSTED'])
})

test('whole IPv6 addresses as keys are warned of once', async () => {
  const warned: unknown[] = []
  const listen = ({ code, message }: Error & { code?: string }): unknown => /ipKeyGenerator/.test(message) && warned.push(code)
  process.on('warning', listen)
  const whole: RateLimitOptions = { keyGenerator: ({ ip }) => ip }
  assert.equal(await keyOf({ trust: 1, forwarded: '203.0.113.7', options: whole }), '203.0.113.7')
  assert.equal(await keyOf({ trust: 1, forwarded: '::ffff:203.0.113.7', options: whole }), '::ffff:203.0.113.7')
  const network: RateLimitOptions = { keyGenerator: ({ ip = '' }) => ipKeyGenerator(ip) }
  assert.equal(await keyOf({ trust: 1, forwarded: '2001:db8:0:42ff::1', options: network }), '2001:db8:0:4200::/56')
  assert.equal(await keyOf({ trust: 1, forwarded: '2001:db8::1', options: { keyGenerator: () => 'user:42' } }), 'user:42')
  assert.deepEqual(warned, [])
  for (const forwarded of ['2001:db8::1', '2001:db8::2']) assert.equal(await keyOf({ trust: 1, forwarded, options: whole }), forwarded)
  process.off('warning', listen)
  assert.deepEqual(warned, ['SLUICEGATE_IPV6_WHOLE'])
})

test('the subnet may be a number, none, or a function, which may take its time', async () => {
  const site = { trust: 1, forwarded: '2001:db8:1:42ff::1' }
  assert.equal(await keyOf({ ...site, options: { ipv6Subnet: 48 } }), '2001:db8:1::/48')
  assert.equal(await keyOf({ ...site, options: { ipv6Subnet: false } }), '2001:db8:1:42ff::1')
  assert.equal(await keyOf({ ...site, options: { ipv6Subnet: async () => 64 } }), '2001:db8:1:42ff::/64')
  assert.equal(await keyOf({ ...site, options: { ipv6Subnet: () => 20 } }), 'OPTION_INVALID')
  assert.throws(() => rateLimit({ ipv6Subnet: 20 }), { option: 'ipv6Subnet' })
  assert.throws(() => rateLimit({ ipv6Subnet: 64, keyGenerator: () => 'a' }), { option: 'ipv6Subnet' })
})

test('numbers are keys; a request without one is a bad one, and never has a key that many share', async () => {
  assert.equal(await keyOf({ options: { keyGenerator: () => 42 } }), '42')
  assert.equal(await keyOf({ options: { keyGenerator: async () => 'ada' } }), 'ada')
  for (const missing of [undefined, '', null]) {
    const answer = JSON.parse(await keyOf({ options: { keyGenerator: () => missing as never } }))
    assert.deepEqual([answer.status, answer.title], [400, 'Bad Request'])
  }
  for (const wrong of [{}, Number.NaN, Number.POSITIVE_INFINITY])
    assert.equal(await keyOf({ options: { keyGenerator: () => wrong as never } }), 'KEY_MISSING')
})
