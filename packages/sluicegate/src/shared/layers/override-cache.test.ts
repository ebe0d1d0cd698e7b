import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freshWarnings } from 'sluicegate-testkit/unhandled-rejections.js'
import { fixedWindow, manualClock, type Policy } from '../../index.js'
import { CallGuard } from '../calls/call-guard.js'
import { type KeptOverrides, OverrideCache, type OverrideStore } from './override-cache.js'

freshWarnings()

const OWN = fixedWindow({ limit: 30, window: '1d', name: 'own' })
const PRO = fixedWindow({ limit: 60, window: '1d', name: 'pro' })
const STALE_MS = 1_000

class HeldOverrides implements OverrideStore {
  version = 1
  loads = 0
  isOut = false
  /** What the answers of loads wait for. */
  held: Promise<void> | undefined
  policies: (readonly [string, unknown])[] = []

  async load(version: number): Promise<KeptOverrides> {
    this.loads++
    if (this.isOut) throw new Error('out')
    const answer = { version: this.version, policies: version === this.version ? undefined : [...this.policies] }
    await this.held
    return answer
  }

  async set(key: string, policy: Policy): Promise<boolean> {
    this.version++
    this.policies.push([key, policy])
    return !this.isOut
  }

  async delete(): Promise<boolean> {
    return false
  }
}

function cached(besideMs = 0) {
  const clock = manualClock(1_789_000_000_000)
  const store = new HeldOverrides()
  const guard = new CallGuard({ serverOf: () => undefined, slotOf: () => undefined }, clock, 100)
  return { clock, store, cache: new OverrideCache(store, guard, clock, STALE_MS, () => OWN, besideMs) }
}

test('many keys without an override cost one look at the store in half of staleMs, and no take waits for it', async () => {
  const { clock, store, cache } = cached()
  await cache.refreshed()
  for (let i = 0; i < 1_000; i++) {
    assert.equal(cache.refreshed(), undefined)
    assert.equal(cache.of(`key ${i}`), undefined)
    clock.advance(10)
    await Promise.resolve()
    await new Promise(setImmediate)
  }
  assert.ok(store.loads >= 18 && store.loads <= 21, String(store.loads))
})

test('an answer from before a change that comes after it, over another connection, takes nothing back', async () => {
  const { clock, store, cache } = cached()
  store.policies = [['old', PRO]]
  await cache.refreshed()
  store.policies = []
  store.version++
  clock.advance(STALE_MS)
  let answer = (): void => undefined
  store.held = new Promise((resolve) => {
    answer = resolve
  })
  const early = cache.refreshed()
  await new Promise(setImmediate)
  store.held = undefined
  await cache.set('acme', PRO)
  assert.equal(cache.of('acme')?.policy.name, 'pro')
  answer()
  await early
  assert.equal(cache.of('acme')?.policy.name, 'pro')
})

test('a take that finds them older than staleMs waits, together with all others', async () => {
  const { clock, store, cache } = cached()
  await cache.refreshed()
  store.policies = [['acme', PRO]]
  store.version++
  clock.advance(STALE_MS - 1)
  assert.equal(cache.refreshed(), undefined)
  clock.advance(1)
  const first = cache.refreshed()
  assert.ok(first instanceof Promise)
  assert.equal(cache.refreshed(), first)
  await first
  assert.equal(cache.of('acme')?.policy.name, 'pro')
  assert.equal(store.loads, 2)
})

test('while the store is not reached what was known last holds, and it is asked twice in staleMs', async () => {
  const { clock, store, cache } = cached()
  store.policies = [['acme', PRO]]
  await cache.refreshed()
  store.isOut = true
  for (let i = 0; i < 100; i++) {
    clock.advance(100)
    await cache.refreshed()
    assert.equal(cache.of('acme')?.policy.name, 'pro')
  }
  assert.ok(store.loads <= 21, String(store.loads))
  await assert.rejects(cache.get('acme'), { code: 'OUTAGE' })
  await assert.rejects(cache.set('acme', PRO), { code: 'OUTAGE' })
  store.isOut = false
  store.policies = []
  store.version++
  clock.advance(10_000)
  await cache.refreshed()
  await new Promise(setImmediate)
  assert.equal(cache.of('acme'), undefined)
})

test('stored values that are no policy, or too large, are not used and cause one warning', async () => {
  const { store, cache } = cached()
  const warned: string[] = []
  const listen = (warning: Error & { code?: string }): void => void warned.push(warning.code ?? '')
  process.on('warning', listen)
  const many = Array.from({ length: 10_001 }, (_, i) => [`key ${i}`, PRO] as const)
  store.policies = [['bad', { algorithm: 'own' }], ['worse', null], ['', PRO], ...many]
  await cache.refreshed()
  assert.deepEqual([cache.of('bad'), cache.of('worse'), cache.of('key 9999')?.policy.name], [undefined, undefined, 'pro'])
  assert.equal(cache.of('key 10000'), undefined)
  await new Promise(setImmediate)
  process.removeListener('warning', listen)
  assert.deepEqual(
    warned.filter((code) => code.startsWith('SLUICEGATE')),
    ['SLUICEGATE_OVERRIDE'],
  )
})

test('an override that the store has no room for is refused', async () => {
  const { store, cache } = cached()
  store.set = async () => false
  await assert.rejects(cache.set('acme', PRO), { name: 'PolicyError', code: 'OPTION_INVALID', option: 'overrides' })
})

test('of overrides that are far away takes wait only for a copy that nobody has looked at for long', async () => {
  const { clock, store, cache } = cached(10_000)
  await cache.refreshed()
  store.held = new Promise((resolve) => clock.after(200, resolve))
  for (let second = 0; second < 20; second++) {
    clock.advance(STALE_MS)
    assert.equal(cache.refreshed(), undefined)
    await new Promise(setImmediate)
  }
  store.held = undefined
  clock.advance(STALE_MS + 10_000)
  await new Promise(setImmediate)
  clock.advance(STALE_MS + 10_000)
  await cache.refreshed()
  assert.ok(store.loads > 10)
})

test('after a check that failed no take waits, until one is answered', async () => {
  const { clock, store, cache } = cached()
  await cache.refreshed()
  store.isOut = true
  clock.advance(STALE_MS)
  await cache.refreshed()
  for (let take = 0; take < 10; take++) {
    clock.advance(STALE_MS)
    assert.equal(cache.refreshed(), undefined)
    await new Promise(setImmediate)
  }
  store.isOut = false
  // The pause of the circuit is over then.
  clock.advance(10_000)
  assert.equal(cache.refreshed(), undefined)
  await new Promise(setImmediate)
  clock.advance(STALE_MS)
  assert.ok(cache.refreshed() instanceof Promise)
})
