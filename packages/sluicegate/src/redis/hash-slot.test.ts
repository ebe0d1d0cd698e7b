import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '@redis/client'
import { Random, RedisProcess } from 'sluicegate-testkit'
import { hashSlot, RedisKeys } from './redis-keys.js'

const LETTERS = ['a', 'Z', '0', ' ', ':', '{', '}', '%', 'ü', '漢', '\u{1f600}', '\ud800', '\n']

test('slots are those of the server: of 1,000 random keys, and of the names that they get', async () => {
  await using server = await RedisProcess.start({ args: ['--cluster-enabled', 'yes'] })
  const client = await createClient({ url: server.url }).connect()
  const random = new Random(20_260_102)
  const keys = new RedisKeys('sluicegate')
  const before = keys.before('rate', 'a {policy}: 50%')
  const slotOf = (name: string) => client.sendCommand(['CLUSTER', 'KEYSLOT', name])
  const compared = Array.from({ length: 1000 }, async () => {
    const key = Array.from({ length: random.integer(1, 20) }, () => LETTERS[random.integer(0, LETTERS.length - 1)]).join('')
    assert.equal(hashSlot(keys.hashedOf(key)), await slotOf(before + keys.after(key)), JSON.stringify(key))
    const plain = key.toWellFormed().replaceAll('{', '')
    assert.equal(hashSlot(plain), await slotOf(plain), JSON.stringify(plain))
  })
  await Promise.all(compared)
  client.destroy()
})

test('keys with braces of their own spread over the slots as others do', () => {
  const keys = new RedisKeys('sluicegate')
  const slots = new Set(Array.from({ length: 10_000 }, (_, i) => hashSlot(keys.hashedOf(`{tenant}:{${i % 7}}:${i}`))))
  // Of 10,000 thrown at random into 16,384 some 7,480 are met.
  assert.ok(slots.size > 7300, `${slots.size} slots`)
})
