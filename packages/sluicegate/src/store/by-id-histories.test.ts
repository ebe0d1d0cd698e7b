import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { byIdMismatch } from 'sluicegate-testkit/holds/by-id-history.js'
import { foundWith } from 'sluicegate-testkit/holds/fleet-history.js'
import { createLimiter } from '../create-limiter.js'
import { allOf } from '../policy/all-of.js'
import { fixedWindow, tokenBucket } from '../policy/single-policy.js'
import { StoredHolds } from '../shared/holds/stored-holds.js'
import { memoryStore } from '../store-testing/index.js'
import { type ManualClock, manualClock } from '../time/clock.js'
import { type CasStore, casStore } from './index.js'

const HISTORIES = shortOrLong(40, 400)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 100

function mismatch(seed: number): Promise<string | undefined> {
  return byIdMismatch(seed, (policy, clock) => {
    const store = casStore(memoryStore({ clock }))
    return createLimiter(policy, { store, clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
  })
}

test(`work by id goes over a store that swaps as the model says, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

const { ended } = StoredHolds.prototype

/** Forgets nothing of records. */
function endedOfSlots(this: StoredHolds, nowUs: number): ReturnType<typeof ended> {
  const records = new Map(this.records)
  const over = ended.call(this, nowUs)
  for (const [id, record] of records) this.records.set(id, record)
  return over
}

const FAULTS: Readonly<Record<string, PropertyDescriptorMap>> = {
  'what is held counts nowhere': { total: { get: () => 0 } },
  'an id is known for ever': { ended: { value: endedOfSlots } },
  'what a step moves stays where it was': { move: { value: () => undefined } },
}

for (const [fault, planted] of Object.entries(FAULTS)) {
  test(`a store where ${fault} would be found by work by id`, async () => {
    assert.notEqual(await foundWith(StoredHolds.prototype, planted, seedsFrom(1, UNTIL_FOUND), mismatch), undefined)
  })
}

const ID = '0'.repeat(32)
const PER_MINUTE = fixedWindow({ limit: 100, window: '1m', name: 'minute' })
/** 50 ms before the end of a minute. */
const LATE_MS = 1_789_002_059_950

/** A store whose next swap takes so long, and then what others do. */
class SlowStore {
  swapMs = 0
  meanwhile: () => Promise<unknown> = async () => undefined
  readonly store: CasStore
  private readonly clock: ManualClock

  constructor(clock: ManualClock) {
    this.clock = clock
    const own = memoryStore({ clock })
    const slow = async <Outcome>(swap: () => Promise<Outcome>): Promise<Outcome> => {
      const { swapMs, meanwhile } = this
      this.swapMs = 0
      if (swapMs > 0) this.clock.advance(swapMs)
      const outcome = await swap()
      if (swapMs > 0) await meanwhile()
      return outcome
    }
    this.store = {
      name: own.name,
      read: (key) => own.read(key),
      swap: (swap) => slow(() => own.swap(swap)),
      swapAll: (swaps) => slow(() => own.swapAll(swaps)),
    }
  }
}

async function beforeTheEnd(t: TestContext, policy: Parameters<typeof createLimiter>[0] = PER_MINUTE) {
  const clock = manualClock(LATE_MS)
  const slow = new SlowStore(clock)
  const begun = () => createLimiter(policy, { store: casStore(slow.store), clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
  const [limiter, other] = [begun(), begun()]
  t.after(() => [limiter, other].map((each) => each.close()))
  const byId = limiter.byId ?? assert.fail()
  assert.equal((await byId.open('ada', ID, { expect: 60 })).isDone, true)
  slow.swapMs = 100
  return { slow, clock, limiter, other, byId }
}

test('a piece that is decided before the end of a window and written after it counts in the new one, once', async (t) => {
  const { limiter, byId } = await beforeTheEnd(t)
  const { isDone, used, held, spent } = await byId.add('ada', ID, 60, 1)
  assert.deepEqual([isDone, used, held, spent], [true, 60, 0, 60])
  assert.equal((await limiter.peek('ada')).remaining, 40)
  assert.deepEqual([(await byId.add('ada', ID, 60, 1)).spent, (await byId.peek('ada', ID)).used], [0, 60])
  assert.equal((await byId.add('ada', ID, 41, 2)).isDone, false)
})

test('where others were there in between, such a piece has what they have left of its hold and of the new window', async (t) => {
  for (const [taken, passes] of [
    [60, true],
    [61, false],
  ] as const) {
    const { slow, other, limiter, byId } = await beforeTheEnd(t)
    slow.meanwhile = async () => other.take('ada', taken)
    const { isDone, used, held } = await byId.add('ada', ID, 40)
    // 20 stay held in the old window; with what is free they are those that the piece needs.
    assert.deepEqual([isDone, used, held], passes ? [true, 40, 0] : [false, 0, 39])
    assert.equal((await limiter.peek('ada')).remaining, 0)
  }
})

test('a piece whose work went on before that was noticed stays as it was answered', async (t) => {
  const { slow, other, byId } = await beforeTheEnd(t)
  slow.meanwhile = async () => other.byId?.close('ada', ID, undefined, 2)
  const { isDone, used } = await byId.add('ada', ID, 60, 1)
  assert.deepEqual([isDone, used, (await byId.peek('ada', ID)).fault], [true, 60, 'closed'])
})

test('at the end of a window what a piece has spent of a bucket beside it is charged once', async (t) => {
  const bucket = tokenBucket({ limit: 100, window: '1h', name: 'hour' })
  const { limiter, byId } = await beforeTheEnd(t, allOf([PER_MINUTE, bucket]))
  assert.equal((await byId.add('ada', ID, 60, 1)).isDone, true)
  assert.deepEqual(
    (await limiter.peek('ada')).parts?.map(({ remaining }) => remaining),
    [40, 40],
  )
})
