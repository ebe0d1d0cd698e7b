import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settled, until } from 'sluicegate-testkit'
import { StoreError } from '../errors.js'
import { fixedWindow, type Key, manualClock } from '../index.js'
import { Outage } from './outage.js'
import { type AccountParts, OutageAccount } from './outage-account.js'

const POLICY = fixedWindow({ limit: 1000, window: '1h' })

/** A store that writes down what it is told; servers by the first character of a key, of which some are out. */
class Told {
  readonly tokens = new Map<string, number>()
  readonly out = new Set<string>()
  readonly clock = manualClock(1_000_000)
  readonly outage = new Outage('local', POLICY, 0.5, this.clock)
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
    const parts = { policy: POLICY, guard, backend: { execute }, outage: this.outage, leases: undefined } as unknown as AccountParts
    this.account = new OutageAccount(() => parts, this.clock)
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

test('after recovery each key is told of once, a few at a time', async () => {
  const told = new Told()
  told.use(keys('a', 1000))
  told.account.recovered()
  await until('all is told', () => !told.outage.isOwing && told.atOnce === 0)
  assert.deepEqual([told.tokens.size, told.calls, told.account.tokens], [1000, 1000, 3000])
  assert.ok(told.mostAtOnce <= 32)
})

test('a key is told of once what was booked of it is settled, and not any more when the limiter is closed meanwhile', async () => {
  const told = new Told()
  let settle: () => void = () => undefined
  for (const isClosed of [false, true]) {
    told.settled = new Promise((resolve) => (settle = resolve))
    told.use(['a1'])
    told.account.recovered()
    await settled()
    assert.equal(told.calls, isClosed ? 1 : 0)
    if (isClosed) told.account.close()
    settle()
    await settled()
    assert.equal(told.calls, 1)
  }
})

test('recoveries of several servers at once tell everything, and nothing twice', async () => {
  const told = new Told()
  for (const server of 'abc') {
    told.out.add(server)
    told.use(keys(server, 300))
  }
  for (const server of 'abc') {
    told.out.delete(server)
    told.account.recovered()
    told.account.recovered()
    await settled()
  }
  await until('all is told', () => !told.outage.isOwing && told.atOnce === 0)
  assert.equal(told.calls, 900)
  assert.ok([...told.tokens.values()].every((tokens) => tokens === 3))
})

test('a server that comes back while another one’s keys are told is not forgotten', async () => {
  const told = new Told()
  told.out.add('b')
  // Those of b are looked at, and passed over, before it is back.
  told.use([...keys('b', 100), ...keys('a', 100)])
  told.account.recovered()
  await settled()
  told.out.delete('b')
  told.account.recovered()
  await until('all is told', () => !told.outage.isOwing && told.atOnce === 0)
  assert.equal(told.tokens.size, 200)
})

test('when the server fails again meanwhile, what was not sent stays, and what was is not told twice', async () => {
  const told = new Told()
  told.use(keys('a', 1000))
  let lost = 0
  told.answer = async () => {
    if (told.calls < 200) return
    told.out.add('a')
    lost++
    throw new StoreError('OUTAGE', 'cut')
  }
  told.account.recovered()
  await until('it has failed', () => told.out.has('a') && told.atOnce === 0)
  assert.ok(lost <= 33, `${lost} were on their way`)
  told.answer = async () => undefined
  told.out.delete('a')
  told.account.recovered()
  await until('the rest is told', () => !told.outage.isOwing && told.atOnce === 0)
  assert.equal(told.calls, 1000)
  assert.equal(told.tokens.size, 1000 - lost)
})

test('keys that came to another server by a failover are found with the next answers', async () => {
  const told = new Told()
  told.out.add('a')
  told.use(keys('a', 10))
  told.account.answered()
  await settled()
  assert.equal(told.calls, 0)
  // Nobody says that their new server is back: it has never been out.
  told.out.delete('a')
  told.account.answered()
  await settled()
  assert.equal(told.calls, 0, 'not looked for again at once')
  told.clock.advance(1000)
  told.account.answered()
  await until('all is told', () => told.tokens.size === 10)
})

test('what is used while it is told is told as well, once', async () => {
  const told = new Told()
  told.use(keys('a', 100))
  let more = 50
  told.answer = async (key) => {
    if (more-- > 0) told.use([key])
  }
  told.account.recovered()
  await until('all is told', () => !told.outage.isOwing && told.atOnce === 0)
  assert.equal(
    [...told.tokens.values()].reduce((sum, tokens) => sum + tokens, 0),
    300 + 150,
  )
})

test('100,000 keys are told of without standing in the way of others', async () => {
  const told = new Told()
  told.use(keys('a', 100_000))
  let turns = 0
  const turn = setInterval(() => turns++, 1)
  told.answer = async () => {
    if (told.calls % 500 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  told.account.recovered()
  await until('all is told', () => !told.outage.isOwing && told.atOnce === 0)
  clearInterval(turn)
  assert.equal(told.tokens.size, 100_000)
  assert.equal(told.account.tokens, 300_000)
  assert.ok(turns > 10)
})

test('100,000 keys of a server that is still out are looked at in small shares', async () => {
  const told = new Told()
  told.out.add('a')
  told.use([...keys('a', 99_000), ...keys('b', 10)])
  told.account.recovered()
  let wasInterrupted = false
  setImmediate(() => {
    wasInterrupted = told.tokens.size === 0
  })
  await until('the others are told', () => told.tokens.size === 10)
  assert.equal(wasInterrupted, true)
})

test('a limiter that is closed meanwhile tells nothing more, and nobody hears an error', async () => {
  const told = new Told()
  told.use(keys('a', 1000))
  told.answer = async () => {
    if (told.calls < 100) return
    told.account.close()
    told.outage.close()
  }
  told.account.recovered()
  await until('it is over', () => told.calls >= 100 && told.atOnce === 0)
  assert.ok(told.calls <= 132, `${told.calls} calls`)
  told.account.recovered()
  told.account.answered()
  told.account.charged(['a1'], 1)
  await settled()
  assert.ok(told.calls <= 132)
})
