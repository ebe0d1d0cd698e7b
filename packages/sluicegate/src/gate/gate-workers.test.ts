import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { shortOrLong } from 'sluicegate-testkit'
import { manualClock } from '../index.js'
import { createGate, type Gate } from './index.js'

const WORKERS = 2
const PROGRAM = `
  import { parentPort, workerData } from 'node:worker_threads'
  const { attachGate } = await import(workerData.module)
  const gate = attachGate(workerData.handle)
  const stop = new Int32Array(workerData.stop)
  parentPort.on('message', ({ look }) => parentPort.postMessage(look.map((key) => gate.check(key))))
  if (workerData.isLooking) {
    const seen = { looks: 0, wrong: [], flagged: 0 }
    parentPort.postMessage('looking')
    while (Atomics.load(stop, 0) === 0) {
      for (let i = 0; i < 200; i++) {
        const verdict = gate.check('abuser ' + i)
        if (verdict !== 'pass' && verdict !== 'flag') seen.wrong.push(verdict)
        if (verdict === 'flag') seen.flagged++
        // Keys that have no verdict at any time, and one that always has.
        if (gate.check('honest ' + i) !== 'pass') seen.wrong.push('honest ' + i)
        if (gate.check('always') !== 'block') seen.wrong.push('always')
        seen.looks += 3
      }
    }
    parentPort.postMessage(seen)
    parentPort.close()
  } else parentPort.postMessage('ready')
`

function worker(gate: Gate, isLooking: boolean): { readonly thread: Worker; readonly stop: Int32Array } {
  const stop = new SharedArrayBuffer(4)
  const workerData = { module: new URL('./index.js', import.meta.url).href, handle: gate.handle(), stop, isLooking }
  const thread = new Worker(new URL(`data:text/javascript,${encodeURIComponent(PROGRAM)}`), { workerData })
  return { thread, stop: new Int32Array(stop) }
}

test('a verdict that one thread gives is seen by all others at once, and ends for all at the same time', async () => {
  const clock = manualClock(1e12)
  const gate = createGate({ window: '7s', block: { above: 10, for: '10s' }, clock })
  const { thread } = worker(gate, false)
  try {
    await once(thread, 'message')
    const look = async (...keys: string[]): Promise<unknown> => {
      thread.postMessage({ look: keys })
      const [verdicts] = await once(thread, 'message')
      return verdicts
    }
    assert.deepEqual(await look('a', 'b'), ['pass', 'pass'])
    for (let i = 0; i < 11; i++) gate.record('a')
    gate.flush()
    assert.deepEqual(await look('a', 'b'), ['block', 'pass'])
    clock.advance(10_128)
    assert.deepEqual(await look('a', 'b'), ['pass', 'pass'])
  } finally {
    await thread.terminate()
  }
})

test('looks of several threads see no verdict of another key while verdicts come and go in the same places', async () => {
  const clock = manualClock(1e12)
  const gate = createGate({
    window: '7s',
    flag: { above: 1, for: '1s' },
    block: { above: 5_000, for: '1d' },
    maxVerdicts: 60,
    clock,
    width: 1_024,
  })
  gate.record('always', 5_001)
  gate.flush()
  const workers = Array.from({ length: WORKERS }, () => worker(gate, true))
  try {
    await Promise.all(workers.map(({ thread }) => once(thread, 'message')))
    const ends = workers.map(({ thread }) => once(thread, 'message'))
    for (let round = 0; round < shortOrLong(3_000, 10_000); round++) {
      // Each pass of the clock ends the verdicts of other keys and gives theirs to new ones, in a set of few lines.
      for (let i = 0; i < 40; i++) gate.record(`abuser ${(round * 17 + i) % 200}`, 2)
      gate.flush()
      clock.advance(500)
      gate.flush()
    }
    for (const { stop } of workers) Atomics.store(stop, 0, 1)
    for (const [seen] of await Promise.all(ends)) {
      assert.deepEqual(seen.wrong.slice(0, 5), [])
      assert.ok(seen.looks > 0 && seen.flagged > 0, `${seen.flagged} of ${seen.looks}`)
    }
  } finally {
    await Promise.all(workers.map(({ thread }) => thread.terminate()))
  }
})

test('looks go on when the thread that counted has ended, and its verdicts end in time', async () => {
  const clock = manualClock(1e12)
  const program = `
    import { parentPort, workerData } from 'node:worker_threads'
    const { createGate } = await import(workerData.module)
    const gate = createGate({ window: '7s', block: { above: 10, for: '10s' }, clock: { nowMs: () => 1e12 } })
    for (let i = 0; i < 11; i++) gate.record('a')
    gate.flush()
    parentPort.postMessage(gate.handle())`
  const module = new URL('./index.js', import.meta.url).href
  const owner = new Worker(new URL(`data:text/javascript,${encodeURIComponent(program)}`), { workerData: { module } })
  const [handle] = await once(owner, 'message')
  await owner.terminate()
  const { attachGate } = await import('./index.js')
  const reader = attachGate(handle, { clock })
  assert.equal(reader.check('a'), 'block')
  clock.advance(10_128)
  assert.equal(reader.check('a'), 'pass')
})
