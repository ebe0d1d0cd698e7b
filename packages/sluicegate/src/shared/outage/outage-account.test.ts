import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled, shortOrLong, until } from 'sluicegate-testkit'
import { StoreError } from '../../errors.js'
import { fixedWindow, type Key, manualClock } from '../../index.js'
import type { UnderPolicy } from '../policy-in-force.js'
import { GivenShare } from './local-share.js'
import { Outage } from './outage.js'
import { OutageAccount } from './outage-account.js'

const POLICY = fixedWindow({ limit: 1000, window: '1h' })

/** An account with a backend that records its charges. The first character of a key is its server; servers in `out` do not answer. */
class RecordedAccount {
  readonly tokens = new Map<string, number>()
  readonly out = new Set<string>()
  readonly clock = manualClock(1_000_000)
  readonly outage = new Outage('local', POLICY, new GivenShare(0.5), this.clock)
  readonly account: OutageAccount
  calls = 0
  atOnce = 0
  mostAtOnce = 0
  answer: (key: string) => Promise<void> = async () => undefined
  /** Until when bookings are on their way. */
  settled: Promise<void> = Promise.resolve()

  constructor() {
    const unwanted = { settled: () => this.settled }
    const guard = { isSound: (key: string) => !this.out.has(key[0] as string), unwanted }
    const execute = ({ key, tokens }: { key: Key; tokens: readonly number[] }): Promise<void> =>
      this.charge(key as string, tokens[0] as number)
    const now = { policy: POLICY, guard, backend: { execute }, outage: this.outage, leases: undefined } as unknown as UnderPolicy
    this.account = new OutageAccount({ now }, this.clock, this.outage.shares)
  }

  use(keys: Iterable<string>): void {
    for (const key of keys) assert.equal(this.outage.take(key, 3, 0).allowed, true)
  }

  async charge(key: string, tokens: number): Promise<void> {
    this.calls++
    this.mostAtOnce = Math.max(this.mostAtOnce, ++this.atOnce)
    try {
      await undefined
      await this.answer(key)
      this.tokens.set(key, (this.tokens.get(key) ?? 0) + tokens)
    } finally {
      this.atOnce--
    }
  }
}

function keys(server: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${server}${i}`)
}

test('after recovery each key is charged once, a few keys at a time', async () => {
  const recorded = new RecordedAccount()
  recorded.use(keys('a', 1000))
  recorded.account.recovered()
  await until('everything is charged', () => !recorded.outage.isOwing && recorded.atOnce === 0)
  assert.deepEqual([recorded.tokens.size, recorded.calls, recorded.account.tokens], [1000, 1000, 3000])
  assert.ok(recorded.mostAtOnce <= 32)
})

test('a key is charged after its bookings are settled, and not at all if the limiter closes before that', async () => {
  const recorded = new RecordedAccount()
  let settle: () => void = () => undefined
  for (const isClosed of [false, true]) {
    recorded.settled = new Promise((resolve) => (settle = resolve))
    recorded.use(['a1'])
    recorded.account.recovered()
    await settled()
    assert.equal(recorded.calls, isClosed ? 1 : 0)
    if (isClosed) recorded.account.close()
    settle()
    await settled()
    assert.equal(recorded.calls, 1)
  }
})

test('concurrent recoveries of several servers charge everything, and nothing twice', async () => {
  const recorded = new RecordedAccount()
  for (const server of 'abc') {
    recorded.out.add(server)
    recorded.use(keys(server, 300))
  }
  for (const server of 'abc') {
    recorded.out.delete(server)
    recorded.account.recovered()
    recorded.account.recovered()
    await settled()
  }
  await until('everything is charged', () => !recorded.outage.isOwing && recorded.atOnce === 0)
  assert.equal(recorded.calls, 900)
  assert.ok([...recorded.tokens.values()].every((tokens) => tokens === 3))
})

test('a server that recovers while another server’s keys are charged is not forgotten', async () => {
  const recorded = new RecordedAccount()
  recorded.out.add('b')
  // The keys of b are checked and skipped before b recovers.
  recorded.use([...keys('b', 100), ...keys('a', 100)])
  recorded.account.recovered()
  await settled()
  recorded.out.delete('b')
  recorded.account.recovered()
  await until('everything is charged', () => !recorded.outage.isOwing && recorded.atOnce === 0)
  assert.equal(recorded.tokens.size, 200)
})

test('if the server fails again, unsent charges stay, and sent ones are not repeated', async () => {
  const recorded = new RecordedAccount()
  recorded.use(keys('a', 1000))
  let lost = 0
  recorded.answer = async () => {
    if (recorded.calls < 200) return
    recorded.out.add('a')
    lost++
    throw new StoreError('OUTAGE', 'cut')
  }
  recorded.account.recovered()
  await until('it has failed', () => recorded.out.has('a') && recorded.atOnce === 0)
  assert.ok(lost <= 33, `${lost} were on their way`)
  recorded.answer = async () => undefined
  recorded.out.delete('a')
  recorded.account.recovered()
  await until('the rest is charged', () => !recorded.outage.isOwing && recorded.atOnce === 0)
  assert.equal(recorded.calls, 1000)
  assert.equal(recorded.tokens.size, 1000 - lost)
})

test('keys moved to another server by a failover are charged after the next answers', async () => {
  const recorded = new RecordedAccount()
  recorded.out.add('a')
  recorded.use(keys('a', 10))
  recorded.account.answered()
  await settled()
  assert.equal(recorded.calls, 0)
  // No recovery of their new server is reported: it was never out.
  recorded.out.delete('a')
  recorded.account.answered()
  await settled()
  assert.equal(recorded.calls, 0, 'no second search at once')
  recorded.clock.advance(1000)
  recorded.account.answered()
  await until('everything is charged', () => recorded.tokens.size === 10)
})

test('tokens spent during a charge are charged as well, once', async () => {
  const recorded = new RecordedAccount()
  recorded.use(keys('a', 100))
  let more = 50
  recorded.answer = async (key) => {
    if (more-- > 0) recorded.use([key])
  }
  recorded.account.recovered()
  await until('everything is charged', () => !recorded.outage.isOwing && recorded.atOnce === 0)
  assert.equal(
    [...recorded.tokens.values()].reduce((sum, tokens) => sum + tokens, 0),
    300 + 150,
  )
})

const MANY = shortOrLong(15_000, 100_000)

test(`charging ${MANY} keys does not block the event loop`, async () => {
  const recorded = new RecordedAccount()
  recorded.use(keys('a', MANY))
  let [most, before] = [0, 0]
  const look = (): void => {
    most = Math.max(most, recorded.calls - before)
    before = recorded.calls
    turn = setImmediate(look)
  }
  let turn = setImmediate(look)
  recorded.answer = () => new Promise((resolve) => setImmediate(resolve))
  recorded.account.recovered()
  await until('everything is charged', () => !recorded.outage.isOwing && recorded.atOnce === 0)
  clearImmediate(turn)
  assert.equal(recorded.tokens.size, MANY)
  assert.equal(recorded.account.tokens, 3 * MANY)
  assert.ok(most <= 64, `${most} calls in one turn`)
})

test(`${MANY} keys of a server that is still out are checked in small batches`, async () => {
  const recorded = new RecordedAccount()
  recorded.out.add('a')
  recorded.use([...keys('a', MANY - 1000), ...keys('b', 10)])
  recorded.account.recovered()
  let wasInterrupted = false
  setImmediate(() => {
    wasInterrupted = recorded.tokens.size === 0
  })
  await until('the others are charged', () => recorded.tokens.size === 10)
  assert.equal(wasInterrupted, true)
})

test('a limiter that closes meanwhile charges nothing more and raises no error', async () => {
  const recorded = new RecordedAccount()
  recorded.use(keys('a', 1000))
  recorded.answer = async () => {
    if (recorded.calls < 100) return
    recorded.account.close()
    recorded.outage.close()
  }
  recorded.account.recovered()
  await until('it is over', () => recorded.calls >= 100 && recorded.atOnce === 0)
  assert.ok(recorded.calls <= 132, `${recorded.calls} calls`)
  recorded.account.recovered()
  recorded.account.answered()
  recorded.account.charged(['a1'], 1)
  await settled()
  assert.ok(recorded.calls <= 132)
})
