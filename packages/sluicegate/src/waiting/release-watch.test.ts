import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { turns } from 'sluicegate-testkit/turns.js'
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
