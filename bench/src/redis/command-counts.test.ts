import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countsIn, sentBetween } from './command-counts.js'

const line = (name: string, calls: number, us: number): string =>
  `cmdstat_${name}:calls=${calls},usec=${us},usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n`

test('counts of several servers are added up', () => {
  const counts = countsIn(line('get', 2, 10) + line('set', 1, 5) + line('get', 3, 20))
  assert.deepEqual(
    [...counts],
    [
      ['get', { calls: 5, us: 30 }],
      ['set', { calls: 1, us: 5 }],
    ],
  )
})

test('a script is one call, whatever commands it runs', () => {
  const before = countsIn(line('evalsha', 10, 100) + line('get', 10, 20))
  const after = countsIn(line('evalsha', 14, 180) + line('get', 14, 28) + line('set', 4, 8) + line('eval', 1, 30))
  assert.deepEqual(sentBetween(before, after), { calls: 5, us: 110 })
})

test('a transaction is each of its commands, and its time is counted once', () => {
  const after = countsIn(line('get', 1, 2) + line('multi', 1, 1) + line('set', 1, 3) + line('pexpire', 1, 2) + line('exec', 1, 9))
  assert.deepEqual(sentBetween(new Map(), after), { calls: 5, us: 8 })
})

test('what servers and clients send to keep in touch is no call of a contender', () => {
  const after = countsIn(
    line('info', 2, 50) + line('replconf', 9, 9) + line('cluster|slots', 1, 9) + line('client|setinfo', 2, 2) + line('get', 1, 1),
  )
  assert.deepEqual(sentBetween(new Map(), after), { calls: 1, us: 1 })
})
