import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { turns } from 'sluicegate-testkit/turns.js'
import { allOf, concurrency, createLimiter, fixedWindow, manualClock, type Policy, slidingLog, tokenBucket } from '../index.js'
import { ReleaseWatch, type ReleaseWords, releaseCount } from './release-watch.js'

function fixture() {
  const at: ReleaseWords = {
    words: new Int32Array(new SharedArrayBuffer(64)),
    released: 2,
    byAll: 3,
    watchers: 4,
    groups: 8,
    groupCount: 4,
  }
  const { words } = at
  return {
    at,
    watchers: () => Atomics.load(words, at.watchers),
    /** As the core does it. */
    release(): void {
      Atomics.add(words, at.released, 1)
      if (Atomics.load(words, at.watchers) !== 0) Atomics.notify(words, at.released)
    },
  }
}

/** A watch that counts what it hears. */
function listener(then?: (times: number, release: () => void) => void) {
  const { at, release } = fixture()
  const heard = { times: 0 }
  const watch = new ReleaseWatch(at, () => {
    heard.times++
    then?.(heard.times, release)
  })
  return { release, heard, watch }
}

test('a release is reported while a watch is open, and not before or after', async () => {
  const { release, heard, watch } = listener()
  release()
  await turns(3)
  assert.equal(heard.times, 0)
  watch.want(true)
  assert.equal(heard.times, 1)
  release()
  await turns(3)
  assert.equal(heard.times, 2)
  watch.want(true)
  watch.want(false)
  release()
  await turns(3)
  release()
  await turns(3)
  assert.equal(heard.times, 2)
})

test('watches are counted, so that no notification is sent in vain', async () => {
  const { at, watchers } = fixture()
  const watches = [new ReleaseWatch(at, () => undefined), new ReleaseWatch(at, () => undefined)]
  for (const watch of watches) watch.want(true)
  assert.equal(watchers(), 2)
  for (const watch of watches) watch.want(true)
  assert.equal(watchers(), 2)
  watches[0]?.want(false)
  assert.equal(watchers(), 1)
  for (const watch of watches) watch.close()
  for (const watch of watches) watch.close()
  assert.equal(watchers(), 0)
})

test('a release while waits retry is not lost', async () => {
  const { heard, watch } = listener((times, release) => {
    if (times < 5) release()
  })
  watch.want(true)
  await turns(10)
  assert.equal(heard.times, 5)
  watch.close()
})

test('releases without end leave this thread time for what else it has to do', async () => {
  const { heard, watch } = listener((_times, release) => release())
  watch.want(true)
  await turns(20)
  watch.close()
  assert.ok(heard.times > 5 && heard.times < 30, String(heard.times))
})

test('who wants to know again before the last watch ended hears of each release', async () => {
  const { release, heard, watch } = listener()
  watch.want(true)
  watch.want(false)
  watch.want(true)
  release()
  await turns(3)
  assert.equal(heard.times, 2)
  watch.want(false)
  // No watch sees this release, but it counts for the next watch.
  release()
  watch.want(true)
  await turns(3)
  assert.equal(heard.times, 3)
  watch.close()
})

test('close ends the watch, so that nothing holds the memory', async () => {
  const { at } = fixture()
  const watch = new ReleaseWatch(at, () => undefined)
  watch.want(true)
  watch.close()
  await turns(3)
  assert.equal(Atomics.notify(at.words, at.released), 0)
})

test('the count of a key moves with the releases of its group and with those of all keys', () => {
  const { at } = fixture()
  const [first, same, other] = [releaseCount(at, 5), releaseCount(at, -3), releaseCount(at, 6)]
  const before = [first(), same(), other()]
  Atomics.add(at.words, at.groups + 1, 1)
  assert.deepEqual(
    [first(), same(), other()].map((count, i) => count !== before[i]),
    [true, true, false],
  )
  const between = other()
  Atomics.add(at.words, at.byAll, 1)
  assert.notEqual(other(), between)
})

test('a release in another thread is heard of', async () => {
  const { at } = fixture()
  const program = `
    const { words, released } = require('node:worker_threads').workerData
    Atomics.add(words, released, 1)
    Atomics.notify(words, released)`
  await new Promise<void>((resolve) => {
    const watch = new ReleaseWatch(at, () => {
      if (Atomics.load(at.words, at.released) > 0) resolve()
    })
    watch.want(true)
    new Worker(program, { eval: true, workerData: at })
  })
})

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
