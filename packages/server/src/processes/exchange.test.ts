import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PolicyError } from 'sluicegate'
import { longTest } from 'sluicegate-testkit'
import { Exchange, type Methods } from './exchange.js'

/** Two ends of a channel, whose messages wait while it is stopped. */
function connected(methods: Methods): { caller: Exchange; stop(): void; go(): void; sent(): number } {
  const waiting: object[] = []
  let isStopped = false
  let sent = 0
  const deliver = (message: object): void => answerer.receive(structuredClone(message))
  const caller: Exchange = new Exchange((message) => {
    sent++
    if (isStopped) waiting.push(message)
    else deliver(message)
  }, {})
  const answerer = new Exchange((message) => caller.receive(structuredClone(message)), methods)
  return {
    caller,
    sent: () => sent,
    stop() {
      isStopped = true
    },
    go() {
      isStopped = false
      for (const message of waiting.splice(0)) deliver(message)
    },
  }
}

test('calls of one turn are one message, and each has its answer or its error', async () => {
  const { caller, sent } = connected({
    double: (number: number) => number * 2,
    later: async (text: string) => `${text}!`,
    misuse() {
      throw new PolicyError('KEY_INVALID', 'key', '', 'must not be empty')
    },
  })
  const [four, text, misuse] = await Promise.allSettled([caller.call('double', 2), caller.call('later', 'a'), caller.call('misuse')])
  assert.deepEqual(
    [four, text].map((each) => each.status === 'fulfilled' && each.value),
    [4, 'a!'],
  )
  assert.ok(misuse.status === 'rejected' && misuse.reason instanceof PolicyError && misuse.reason.code === 'KEY_INVALID')
  assert.equal(sent(), 1)
})

test('a call that the other process does not begin in time is rejected, and never begins', async () => {
  let takes = 0
  const { caller, stop, go } = connected({ take: () => ++takes })
  stop()
  await assert.rejects(caller.callWith({ timeoutMs: 1 }, 'take'), { name: 'StoreError', code: 'OUTAGE' })
  go()
  assert.equal(await caller.call('take'), 1)
})

longTest('a process that has stopped does not fill the memory of another one', async () => {
  const { caller, stop } = connected({})
  stop()
  const waiting = Array.from({ length: 65_536 }, () => caller.callWith({ timeoutMs: 60_000 }, 'take').catch((error: Error) => error))
  await assert.rejects(caller.call('take'), { code: 'OUTAGE', message: /does not answer/ })
  caller.close()
  for (const error of await Promise.all(waiting)) assert.match(String(error), /has ended/)
  await assert.rejects(caller.call('take'), { code: 'OUTAGE', message: /has ended/ })
})
