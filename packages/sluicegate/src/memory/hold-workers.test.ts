import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { shortOrLong } from 'sluicegate-testkit'
import { createLimiter } from '../create-limiter.js'
import { fixedWindow, levels, manualClock, slidingLog, tokenBucket } from '../index.js'

const START_MS = 1_789_000_020_000
const LIMIT = 3_000
const WORKERS = 3
const LIVES = shortOrLong(2, 12)
/** Tokens of one operation at most. */
const MOST = 20
const SPENT = 0
const CUT = 1
const OPERATIONS = 2

/**
 * Opens, adds, closes and takes at random until it is ended. What it has spent is counted after each step, so one that is ended within a step has
 * spent that more.
 */
const WORKER = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { library, handle, counts, seed } = workerData
  import(library).then(({ attachLimiter }) => {
    const limiter = attachLimiter(handle)
    let state = seed
    const random = (most) => 1 + ((state = (Math.imul(state, 1103515245) + 12345) >>> 0) >>> 8) % most
    const spent = (tokens) => Atomics.add(counts, ${SPENT}, tokens)
    const works = []
    parentPort.postMessage('begun')
    for (;;) {
      Atomics.add(counts, ${OPERATIONS}, 1)
      const key = { org: 'acme', user: 'ada' }
      const what = random(10)
      if (what <= 3 && works.length < 4) {
        const expect = random(${MOST})
        const work = limiter.open(key, { expect, ttl: '1s' })
        if (work.allowed) works.push({ work, left: expect })
      } else if (what <= 7 && works.length > 0) {
        const own = works[random(works.length) - 1]
        const tokens = Math.min(own.left, random(5))
        if (!own.work.add(tokens)) Atomics.add(counts, ${CUT}, 1)
        spent(tokens)
        own.left -= tokens
      } else if (what <= 9 && works.length > 0) {
        const [{ work }] = works.splice(random(works.length) - 1, 1)
        work.close()
      } else if (limiter.take(key, 1).allowed) spent(1)
    }
  })
`

const LEVELS = [
  ['fixed windows', fixedWindow({ limit: LIMIT, window: 'day' }), fixedWindow({ limit: LIMIT, window: 'day' })],
  ['a log and a bucket', slidingLog({ limit: LIMIT, window: '1d' }), tokenBucket({ limit: LIMIT, window: '366d' })],
] as const

for (const [name, org, user] of LEVELS) {
  test(`${name}: threads that are ended wherever they are leave what was spent, no hold beyond its ttl, and cut nobody's hold`, async () => {
    const clock = manualClock(START_MS)
    const limiter = createLimiter(levels({ org, user }), { clock })
    const counts = new Int32Array(new SharedArrayBuffer(12))
    const library = new URL('../index.js', import.meta.url).href
    let ended = 0
    const begun = async (seed: number): Promise<Worker> => {
      const workerData = { library, handle: limiter.handle(), counts, seed }
      const worker = new Worker(WORKER, { eval: true, workerData })
      await once(worker, 'message')
      return worker
    }
    const workers = await Promise.all(Array.from({ length: WORKERS }, (_, i) => begun(i + 1)))
    for (let life = 0; life < LIVES; life++) {
      // They go on while this one is ended.
      const until = Atomics.load(counts, OPERATIONS) + 2_000
      while (Atomics.load(counts, OPERATIONS) < until) await new Promise((done) => setImmediate(done))
      await workers[life % WORKERS]?.terminate()
      ended++
      workers[life % WORKERS] = await begun(100 + life)
    }
    for (const worker of workers) {
      await worker.terminate()
      ended++
    }
    // At most 9/8 of a ttl after the last of them, nothing is held any more.
    clock.advance(1_125)
    const { parts = [] } = limiter.peek({ org: 'acme', user: 'ada' })
    const spent = Atomics.load(counts, SPENT)
    assert.ok(spent > 0)
    for (const { remaining } of parts) {
      const charged = LIMIT - remaining
      assert.ok(charged >= spent - 1 && charged <= spent + ended * MOST, `${spent} spent, ${charged} charged`)
    }
    assert.equal(Atomics.load(counts, CUT), 0)
    const left = Math.min(...parts.map(({ remaining }) => remaining))
    if (left > 0) assert.equal(limiter.open({ org: 'acme', user: 'ada' }, { expect: left }).allowed, true)
    assert.equal(limiter.take({ org: 'acme', user: 'ada' }).allowed, false)
  })
}
