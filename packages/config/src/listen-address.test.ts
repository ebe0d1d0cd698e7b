import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listenAddressText, parseListenAddress } from './listen-address.js'

for (const [text, address] of [
  ['127.0.0.1:8080', { host: '127.0.0.1', port: 8080 }],
  ['localhost:0', { host: 'localhost', port: 0 }],
  ['[::1]:65535', { host: '::1', port: 65_535 }],
  ['unix:/run/sluicegate.sock', { path: '/run/sluicegate.sock' }],
  ['unix:relative.sock', { path: 'relative.sock' }],
  ['off', undefined],
] as const) {
  test(`the address ${text} is read, and written the same way`, () => {
    assert.deepEqual(parseListenAddress(text), address)
    assert.equal(listenAddressText(parseListenAddress(text)), text)
  })
}

for (const text of [
  '',
  '8080',
  ':8080',
  '127.0.0.1',
  '::1:8080',
  '[::1]',
  'a:65536',
  'a:1x',
  'unix:',
  `unix:/${'x'.repeat(107)}`,
  'OFF',
  'http://a:1',
]) {
  test(`${JSON.stringify(text.slice(0, 20))} is no address`, () => assert.throws(() => parseListenAddress(text), RangeError))
}
