import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { ReleaseWatch } from './release-watch.js'

function word() {
  return { words: new Int32Array(new SharedArrayBuffer(16)), index: 2 }
}

function release({ words, index }: ReturnType<typeof word>): void {
  Atomics.add(words, index, 1)
  Atomics.notify(words, index)
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

test('a release is heard of while somebody wants to know, and not before or after', async () => {
  const shared = word()
  let heard = 0
  const watch = new ReleaseWatch(shared, () => {
    heard++
  })
  release(shared)
  await turn()
  assert.equal(heard, 0)
  watch.want(true)
  assert.equal(heard, 1)
  release(shared)
  await turn()
  assert.equal(heard, 2)
  watch.want(true)
  watch.want(false)
  release(shared)
  await turn()
  release(shared)
  await turn()
  assert.equal(heard, 2)
})

test('a release while those who wait ask is not lost', async () => {
  const shared = word()
  let heard = 0
  const watch = new ReleaseWatch(shared, () => {
    if (++heard < 5) release(shared)
  })
  watch.want(true)
  await turn()
  assert.equal(heard, 5)
  watch.close()
})

test('who wants to know again before the last watch ended hears of each release', async () => {
  const shared = word()
  let heard = 0
  const watch = new ReleaseWatch(shared, () => {
    heard++
  })
  watch.want(true)
  watch.want(false)
  watch.want(true)
  release(shared)
  await turn()
  assert.equal(heard, 2)
  watch.close()
})

test('close ends the watch, so that nothing holds the memory', async () => {
  const shared = word()
  const watch = new ReleaseWatch(shared, () => undefined)
  watch.want(true)
  watch.close()
  await turn()
  assert.equal(Atomics.notify(shared.words, shared.index), 0)
})

test('a release in another thread is heard of', async () => {
  const shared = word()
  const program = `
    const { words, index } = require('node:worker_threads').workerData
    Atomics.add(words, index, 1)
    Atomics.notify(words, index)`
  await new Promise<void>((resolve) => {
    const watch = new ReleaseWatch(shared, () => {
      if (Atomics.load(shared.words, shared.index) > 0) resolve()
    })
    watch.want(true)
    new Worker(program, { eval: true, workerData: shared })
  })
})
