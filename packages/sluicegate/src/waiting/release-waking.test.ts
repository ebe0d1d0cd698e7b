import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { allOf, concurrency, createLimiter, fixedWindow, manualClock, type Policy, slidingLog, tokenBucket } from '../index.js'

// Those who wait in the queue here are woken by what another thread gives back, before the clock would wake them: it stands still.

const ONE = concurrency({ limit: 1, ttl: '1h', name: 'one' })
const TWO = concurrency({ limit: 2, ttl: '1h', name: 'one' })
const BUCKET = tokenBucket({ limit: 100, window: '1s', name: 'bucket' })

const PROGRAM = `
  const { workerData: library, parentPort } = require('node:worker_threads')
  import(library).then(({ attachLimiter }) => {
    let limiter
    parentPort.on('message', ([verb, ...args]) => {
      const answer = verb === 'attach' ? undefined : limiter[verb](...args)
      if (verb === 'attach') limiter = attachLimiter(...args)
      if (verb === 'take') parentPort.once('message', () => answer.release())
      parentPort.postMessage('done')
    })
  })`

const worker = new Worker(PROGRAM, { eval: true, workerData: new URL('../index.js', import.meta.url).href })
after(() => worker.terminate())

/** Runs a command in a separate thread. */
async function there(...job: unknown[]): Promise<void> {
  const done = new Promise<void>((resolve, reject) => {
    worker.once('message', () => resolve())
    worker.once('error', reject)
  })
  worker.postMessage(job)
  await done
}

const WAKING: readonly { readonly what: string; readonly policy: Policy; readonly full?: number; readonly job: readonly unknown[] }[] = [
  { what: 'a reset', policy: ONE, full: 1, job: ['reset', 'k'] },
  { what: 'a refund', policy: ONE, full: 1, job: ['refund', 'k', 1] },
  { what: 'another policy', policy: ONE, full: 1, job: ['update', TWO] },
  { what: 'a lifted block', policy: ONE, job: ['block', 'k', 0] },
  { what: 'a lifted block of a bucket', policy: BUCKET, job: ['block', 'k', 0] },
  { what: 'a reset of a blocked window', policy: fixedWindow({ limit: 5, window: '1s' }), job: ['reset', 'k'] },
  { what: 'a lifted block of a log', policy: slidingLog({ limit: 5, window: '1s' }), job: ['block', 'k', 0] },
  { what: 'a reset of several policies', policy: allOf([BUCKET, ONE]), full: 1, job: ['reset', 'k'] },
  {
    what: 'a refund of several policies',
    policy: allOf([BUCKET, slidingLog({ limit: 5, window: '1h' })]),
    full: 5,
    job: ['refund', 'k', 1],
  },
  { what: 'an update of several policies', policy: allOf([BUCKET, ONE]), full: 1, job: ['update', allOf([BUCKET, TWO])] },
]

for (const { what, policy, full, job } of WAKING) {
  test(`${what} in another thread wakes who waits in the queue`, async () => {
    const limiter = createLimiter(policy, { clock: manualClock(1_789_000_000_000), maxKeys: 100 })
    await there('attach', limiter.handle())
    await there('peek', 'k')
    if (full === undefined) limiter.block('k', '1h')
    else limiter.take('k', full)
    let isAnswered = false
    const waiting = limiter.wait('k').then((answer) => {
      isAnswered = true
      return answer
    })
    await nextTurn()
    assert.equal(isAnswered, false)
    await there(...job)
    assert.equal((await waiting).allowed, true)
  })
}

test('a permit released in another thread wakes who waits in the queue, also under one of several keys', async () => {
  const limiter = createLimiter(allOf([BUCKET, ONE]), { clock: manualClock(1_789_000_000_000), maxKeys: 100 })
  await there('attach', limiter.handle())
  await there('take', ['ann', 'team'])
  const waiting = limiter.wait(['bob', 'team'])
  await nextTurn()
  // The next message releases it.
  await there('peek', ['ann', 'team'])
  assert.equal((await waiting).allowed, true)
})

test('a release asks for those alone who may gain by it, and once', async () => {
  const limiter = createLimiter(ONE, { clock: manualClock(1_789_000_000_000), maxKeys: 1000 })
  const keys = Array.from({ length: 300 }, (_, i) => `key ${i}`)
  const held = keys.map((key) => limiter.take(key))
  const waits = keys.map((key) => limiter.wait(key))
  const { core } = limiter as unknown as { core: { reserve: (...args: number[]) => number } }
  const { reserve } = core
  let asked = 0
  core.reserve = (...args) => {
    asked++
    return reserve(...args)
  }
  // The first that wakes them after they came lets each ask once more.
  held[0]?.release()
  for (let turn = 0; turn < 5; turn++) await nextTurn()
  asked = 0
  for (const permit of held.slice(1)) {
    permit.release()
    for (let turn = 0; turn < 3; turn++) await nextTurn()
  }
  assert.ok((await Promise.all(waits)).every(({ allowed }) => allowed))
  // Each for itself, and now and then for another whose key is in the same group of 512.
  assert.ok(asked >= 299 && asked < 299 * 1.6, String(asked))
})
