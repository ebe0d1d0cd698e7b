import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fleet, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { concurrency, gcra, tokenBucket } from '../index.js'

test('jobs of a worker start as the primary admits them', async () => {
  const { clock, limiter } = fleet(gcra({ limit: 1, window: '1s', burst: 1 }))
  const started: number[] = []
  const runs = [1, 2, 3].map((job) => limiter.run('key', () => started.push(job)))
  await turns(12)
  assert.deepEqual(started, [1])
  for (let i = 0; i < 2; i++) {
    clock.advance(1000)
    await turns(12)
  }
  await Promise.all(runs)
  assert.deepEqual(started, [1, 2, 3])
})

test('a place of the primary is held while a job runs, and is free for the next job after it', async () => {
  const { limiter, served } = fleet(concurrency({ limit: 1, ttl: '1h' }), { worker: { queue: { maxQueued: 1 } } })
  let end: () => void = () => undefined
  const first = limiter.run('key', () => new Promise<void>((resolve) => (end = resolve)))
  await turns(12)
  assert.equal(served.limiter.peek('key').remaining, 0)
  const second = limiter.run('key', () => 'second')
  await turns(12)
  await assert.rejects(
    limiter.run('key', () => 'third'),
    { code: 'QUEUE_FULL' },
  )
  end()
  await first
  assert.equal(await second, 'second')
  await turns(12)
  assert.equal(served.limiter.peek('key').remaining, 1)
})

test('jobs that are aborted or cleared leave the budget of the primary as it was', async () => {
  const { limiter, served } = fleet(tokenBucket({ limit: 1, window: '1h' }))
  await limiter.run('key', () => undefined)
  const controller = new AbortController()
  const aborted = assert.rejects(
    limiter.run('key', () => undefined, { signal: controller.signal }),
    /enough/,
  )
  const cleared = assert.rejects(
    limiter.run('key', () => undefined),
    { code: 'CLEARED' },
  )
  await turns(12)
  controller.abort(new Error('enough'))
  limiter.queue.clear()
  await Promise.all([aborted, cleared])
  await turns(12)
  assert.equal(served.limiter.peek('key').retryAfterMs, 3_600_000)
})
