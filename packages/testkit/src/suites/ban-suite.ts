import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BanEvent, BanOptions } from '../../../sluicegate/dist/ban-options.js'
import { allOf, concurrency, fixedWindow, type Policy, tokenBucket } from '../../../sluicegate/dist/index.js'
import type { ManualClock } from '../../../sluicegate/dist/time/clock.js'
import { type AnyLimiter, refused } from './layer-suite.js'

const HOUR_MS = 3_600_000
const ONE = fixedWindow({ limit: 1, window: '365d', name: 'one' })

export interface BanHarness {
  readonly name: string
  /** Two limiters of one state, as two processes have it, on one clock, which tells bans; blocks may be on another that moves by itself. */
  make(
    policy: Policy,
    banAfter: BanOptions,
    more?: { readonly shadow?: boolean; readonly deny?: string[] },
  ): { one: AnyLimiter; other: AnyLimiter; clock: ManualClock }
}

/** Bans after repeated denials: the same over every kind of limiter. */
export function banSuite({ name, make }: BanHarness): void {
  const rule = { denials: 3, within: '1m', for: '1h', factor: 2, max: '4h' } as const
  const near = (ms: number, expected: number): void => assert.ok(ms <= expected && ms > expected - 60_000, `${ms} is not ${expected}`)
  /** Shorter than the window of the policy, so that a block is seen by its time. */
  const bucket = tokenBucket({ limit: 1, window: '10m', name: 'bucket' })

  test(`${name}: after the configured denials within the time the key is banned, and no other`, async () => {
    const bans: BanEvent[] = []
    const { one, other } = make(bucket, { ...rule, onBan: (ban) => void bans.push(ban) })
    await one.take('k')
    for (let i = 0; i < 2; i++) assert.ok((await one.take('k')).retryAfterMs <= 600_000)
    const third = await one.take('k')
    near(third.retryAfterMs, HOUR_MS)
    assert.ok(third.resetAfterMs >= third.retryAfterMs)
    for (const limiter of [one, other]) near((await limiter.peek('k')).retryAfterMs, HOUR_MS)
    assert.equal((await one.take('else')).allowed, true)
    assert.deepEqual(bans, [{ policy: 'bucket', key: 'k', forMs: HOUR_MS, bans: 1 }])
  })

  test(`${name}: denials further apart than the time ban no key`, async () => {
    const { one, clock } = make(bucket, rule)
    await one.take('k')
    for (let i = 0; i < 10; i++) {
      assert.ok((await one.take('k')).retryAfterMs < HOUR_MS)
      clock.advance(31_000)
    }
  })

  test(`${name}: denials while a key is blocked are not counted, and each ban is longer than the one before, up to the longest`, async () => {
    const { one, clock } = make(bucket, rule)
    const lengths: number[] = []
    for (let ban = 0; ban < 4; ban++) {
      await one.block('k', 0)
      await one.take('k')
      let last = await one.take('k')
      for (let i = 0; i < 2; i++) last = await one.take('k')
      lengths.push(Math.round(last.retryAfterMs / HOUR_MS))
      for (let i = 0; i < 20; i++) near((await one.take('k')).retryAfterMs, last.retryAfterMs)
      clock.advance((lengths.at(-1) as number) * HOUR_MS)
    }
    assert.deepEqual(lengths, [1, 2, 4, 4])
  })

  test(`${name}: a ban that began more than twice the longest ago is forgotten, as is one by reset`, async () => {
    const bans: number[] = []
    const { one, clock } = make(bucket, { ...rule, onBan: (ban) => void bans.push(ban.bans) })
    const banned = async (): Promise<void> => {
      await one.block('k', 0)
      await one.take('k')
      for (let i = 0; i < 3; i++) await one.take('k')
    }
    await banned()
    clock.advance(8 * HOUR_MS)
    await banned()
    clock.advance(2 * HOUR_MS)
    await banned()
    await one.reset('k')
    assert.equal((await one.take('k')).allowed, true)
    await banned()
    assert.deepEqual(bans, [1, 1, 2, 1])
  })

  test(`${name}: what can never pass, and a key on a deny list, is not counted`, async () => {
    const { one } = make(bucket, rule, { deny: ['foe'] })
    for (let i = 0; i < 10; i++) {
      assert.equal((await one.take('k', 5)).retryAfterMs, Number.POSITIVE_INFINITY)
      assert.equal((await one.take('foe')).retryAfterMs, Number.POSITIVE_INFINITY)
    }
    assert.equal((await one.take('k')).allowed, true)
  })

  test(`${name}: a bound key is counted with its key, and in shadow mode a ban denies nothing`, async () => {
    const { one } = make(bucket, rule, { shadow: true })
    const bound = one.key('k')
    await bound.take()
    for (let i = 0; i < 2; i++) await bound.take()
    await one.take('k')
    const { allowed, wouldDeny, resetAfterMs } = await bound.take()
    assert.deepEqual([allowed, wouldDeny], [true, true])
    near(resetAfterMs, HOUR_MS)
  })

  test(`${name}: permits are denied and banned like others`, async () => {
    const { one } = make(concurrency({ limit: 1, ttl: '10m', name: 'slots' }), rule)
    await one.take('k')
    for (let i = 0; i < 2; i++) await one.take('k')
    const banned = (await one.take('k')) as unknown as { readonly retryAfterMs: number; release(): unknown }
    near(banned.retryAfterMs, HOUR_MS)
    assert.equal(await banned.release(), false)
  })

  test(`${name}: a ban that was lifted counts the denials that follow, and the next ban is longer`, async () => {
    const { one } = make(bucket, rule)
    for (let i = 0; i < 4; i++) await one.take('k')
    await one.block('k', '1m') // leaves the longer ban in force
    for (let i = 0; i < 9; i++) near((await one.take('k')).retryAfterMs, HOUR_MS)
    await one.block('k', 0)
    for (let i = 0; i < 2; i++) assert.ok((await one.take('k')).retryAfterMs <= 600_000)
    near((await one.take('k')).retryAfterMs, 2 * HOUR_MS)
  })

  test(`${name}: a denial in flight when the limiter closes is reported`, async () => {
    const { one } = make(bucket, { ...rule, denials: 1 })
    await one.take('k')
    const denied = one.take('k')
    one.close()
    assert.equal((await denied).allowed, false)
  })

  test(`${name}: a hook that throws is a warning, and the denial stands`, async () => {
    const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
    const onBan = (): never => {
      throw new Error('log is full')
    }
    const { one } = make(ONE, { ...rule, denials: 1, onBan })
    await one.take('k')
    assert.equal((await one.take('k')).allowed, false)
    assert.equal((await warned).message, 'log is full')
  })

  test(`${name}: several keys in one call, and options that make no sense, are refused`, async () => {
    const { one } = make(allOf([ONE, bucket]), rule)
    await refused(() => one.take(['a', 'b']), { code: 'KEY_INVALID', option: 'key' })
    await refused(() => one.key(['a', 'b']), { code: 'KEY_INVALID', option: 'key' })
    for (const [wrong, code, option] of [
      [{ denials: 0 }, 'OPTION_INVALID', 'banAfter.denials'],
      [{ denials: 1001 }, 'OPTION_INVALID', 'banAfter.denials'],
      [{ within: 0 }, 'WINDOW_INVALID', 'banAfter.within'],
      [{ for: 0 }, 'DURATION_INVALID', 'banAfter.for'],
      [{ for: undefined }, 'DURATION_INVALID', 'banAfter.for'],
      [{ factor: 0.5 }, 'OPTION_INVALID', 'banAfter.factor'],
      [{ max: '1m' }, 'OPTION_INVALID', 'banAfter.max'],
      [{ onBan: 5 }, 'OPTION_INVALID', 'banAfter.onBan'],
      [{ length: 5 }, 'OPTION_UNKNOWN', 'length'],
    ] as const) {
      assert.throws(() => make(ONE, { ...rule, ...(wrong as object) }), { name: 'PolicyError', code, option })
    }
  })
}
