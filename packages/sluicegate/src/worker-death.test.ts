import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Mate, Random } from 'sluicegate-testkit'
import { createLimiter, manualClock, tokenBucket } from './index.js'

const DEATHS = 200
const BURST = 50

test(`I8: ${DEATHS} threads ended at random moments leave nothing stuck: every key answers, and later has its whole burst`, async (t) => {
  const clock = manualClock(1_789_000_000_000)
  // Room for a third of the keys and blocks: threads end while they forget keys and move others in, too.
  const limiter = createLimiter(tokenBucket({ limit: BURST, window: '1h' }), { clock, maxKeys: 64 })
  const keys = Array.from({ length: 96 }, (_, i) => `key ${i}`)
  await endOneAfterAnother(t, { handle: limiter.handle() }, keys, false, () => {
    clock.advance(1000)
    for (const key of keys) limiter.take(key)
  })
  clock.advance(1000 * 3_600_000)
  for (const key of keys) {
    let passed = 0
    for (let i = 0; i < BURST + 5; i++) if (limiter.take(key).allowed) passed++
    assert.equal(passed, BURST, key)
    clock.advance(1000 * 3_600_000)
  }
  assert.equal(limiter.stats().contentions, 0)
})

test('I8: a thread that ends loses at most the one operation it was at', async (t) => {
  const limiter = createLimiter(tokenBucket({ limit: 100_000, window: '366d' }), { clock: manualClock(), maxKeys: 100 })
  const keys = Array.from({ length: 20 }, (_, i) => `key ${i}`)
  const passed = await endOneAfterAnother(t, { handle: limiter.handle() }, keys, true, () => undefined)
  let lost = 0
  for (const [i, key] of keys.entries()) {
    const spent = 100_000 - limiter.peek(key).remaining
    assert.ok(spent >= (passed[i] ?? 0), key)
    lost += spent - (passed[i] ?? 0)
  }
  assert.ok(lost <= DEATHS, `${lost} charged without being counted`)
})

/** Keeps two workers at the limiter, ends the older of them each time, and answers the takes that passed, by key. */
async function endOneAfterAnother(
  t: TestContext,
  start: ConstructorParameters<typeof Mate>[0],
  keys: readonly string[],
  takesOnly: boolean,
  between: () => void,
): Promise<readonly number[]> {
  const random = new Random(8)
  const counts = new Int32Array(new SharedArrayBuffer(4 * (keys.length + 1)))
  const mates: Mate[] = []
  let failure: Error | undefined
  const hire = (seed: number): Mate => {
    const mate = new Mate(start)
    mates.push(mate)
    mate.onError((error) => {
      failure ??= error
    })
    mate.start({ kind: 'for-ever', keys, seed, counts, takesOnly })
    return mate
  }
  t.after(() => Promise.all(mates.map((mate) => mate.terminate())))
  let older = hire(0)
  for (let death = 1; death <= DEATHS; death++) {
    const younger = hire(death)
    const until = Atomics.load(counts, 0) + random.magnitude(100, 20_000)
    while (Atomics.load(counts, 0) < until && failure === undefined) await nextTurn()
    await older.terminate()
    assert.equal(failure, undefined)
    between()
    older = younger
    if (death % 50 === 0) t.diagnostic(`${death} threads ended`)
  }
  await older.terminate()
  return [...counts.subarray(1)]
}
