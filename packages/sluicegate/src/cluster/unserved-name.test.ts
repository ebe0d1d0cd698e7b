import assert from 'node:assert/strict'
import { test } from 'node:test'
import { channelPair, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { createLimiter } from '../create-limiter.js'
import { manualClock, tokenBucket } from '../index.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

freshWarnings()

const policy = (name: string) => tokenBucket({ limit: 100, window: '1s', name })

/** The warnings of a run, without what clocks and others have to say. */
async function warnings(run: () => Promise<void>): Promise<string[]> {
  const messages: string[] = []
  const onWarning = (warning: Error & { code?: string }): void =>
    void (warning.code === 'SLUICEGATE_POLICY' && messages.push(warning.message))
  process.on('warning', onWarning)
  await run()
  await turns()
  process.off('warning', onWarning)
  return messages
}

test('a worker whose policy the primary does not serve warns with the served names, and decides locally at once', async () => {
  const messages = await warnings(async () => {
    const clock = manualClock()
    const pair = channelPair()
    const served = ['A', 'B'].map((name) => serveLimiter(policy(name), { clock }))
    for (const each of served) each.serve(pair.worker)
    const limiter = createLimiter(policy('X'), { store: primary({ process: pair.parent }), clock })
    await turns()
    for (let second = 0; second < 8; second++) {
      const take = limiter.take('k')
      await turns()
      clock.advance(second === 0 ? 150 : 6_000)
      await turns()
      assert.equal((await take).source, 'outage')
    }
    for (const each of [...served, limiter]) each.close()
  })
  assert.deepEqual(messages, ['the primary serves no policy "X"; it serves: "A", "B": until then the option outage decides here'])
})

test('a primary that serves it a little later is no fault, and decides from then on', async () => {
  const messages = await warnings(async () => {
    const clock = manualClock()
    const pair = channelPair()
    const first = serveLimiter(policy('A'), { clock })
    first.serve(pair.worker)
    const limiter = createLimiter(policy('X'), { store: primary({ process: pair.parent }), clock, timeout: 1_000 })
    await turns()
    const second = serveLimiter(policy('X'), { clock })
    second.serve(pair.worker)
    await turns()
    clock.advance(2_000)
    for (let i = 0; i < 3; i++) {
      const take = limiter.take('k')
      await turns()
      assert.notEqual((await take).source, 'outage')
    }
    for (const each of [first, second, limiter]) each.close()
  })
  assert.deepEqual(messages, [])
})

test('a primary and a worker of different versions tell each other so, carry nothing out, and the worker warns once', async () => {
  const messages = await warnings(async () => {
    const clock = manualClock()
    const pair = channelPair()
    const served = serveLimiter(policy('A'), { clock })
    served.serve(pair.worker)
    // A worker of a later version: each of its requests has an error for an answer, in the form that every version reads.
    pair.worker.emit('message', ['sluicegate:ask', 'A', 2, [[7, 'take', 'k', 1]]])
    const [kind, name, version, answers] = pair.toWorker.at(-1) as readonly unknown[]
    assert.deepEqual([kind, name, version], ['sluicegate:answer', 'A', 1])
    assert.match(JSON.stringify(answers), /^\[\[7,"VERSION_UNKNOWN",".* speaks version 1 of the protocol, and not 2"\]\]$/)
    assert.equal(served.limiter.peek('k').remaining, 100)
    // A primary of a later version.
    const { parent, worker } = channelPair()
    served.serve(worker)
    const limiter = createLimiter(policy('A'), { store: primary({ process: parent }), clock })
    await turns()
    parent.emit('message', ['sluicegate:terms', 'A', 2, { of: 'another form' }])
    for (let i = 0; i < 2; i++) assert.equal((await limiter.take('k')).source, 'outage')
    for (const each of [served, limiter]) each.close()
  })
  assert.deepEqual(messages, [
    'the primary speaks version 2 of the protocol, and not 1: restart the processes with one version; until then the option outage decides here',
  ])
})
