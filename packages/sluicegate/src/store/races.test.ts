import assert from 'node:assert/strict'
import { test } from 'node:test'
import { policyOf, Random, type SinglePolicySpec, shortOrLong } from 'sluicegate-testkit'
import { budgetOf, type Spent, surelyOver } from 'sluicegate-testkit/history/excess.js'
import type { CasState, CasStore, CasSwap } from '../../dist/store/cas-store.js'
import { createLimiter } from '../create-limiter.js'
import { allOf, concurrency, type Decision, fixedWindow, manualClock, type Policy, tokenBucket } from '../index.js'
import { memoryStore } from '../store-testing/memory-store.js'
import type { Clock } from '../time/clock.js'
import { casStore } from './cas.js'

/** What happens to one call: when it reaches the store and its answer the caller, and what of it is lost. Times are milliseconds. */
interface Passage {
  readonly thereMs: number
  readonly backMs: number
  readonly isRequestLost?: boolean
  readonly isReplyLost?: boolean
  /** The caller receives an error, and the request reaches the store this many milliseconds after it. */
  readonly strayMs?: number
}

/** A store behind a network that delays, reorders and loses calls, on a clock that the test moves. */
class UnreliableStore implements CasStore {
  readonly name = 'unreliable'
  private readonly store: Required<Omit<CasStore, 'step' | 'connectionsOpened'>>
  private readonly after: (ms: number, call: () => void) => unknown
  private readonly passage: () => Passage

  constructor(
    store: Required<Omit<CasStore, 'step' | 'connectionsOpened'>>,
    after: (ms: number, call: () => void) => unknown,
    passage: () => Passage,
  ) {
    this.store = store
    this.after = after
    this.passage = passage
  }

  read(key: string): Promise<CasState> {
    return this.passed(() => this.store.read(key))
  }

  swap(swap: CasSwap): ReturnType<CasStore['swap']> {
    return this.passed(() => this.store.swap(swap))
  }

  readAll(keys: readonly string[]): Promise<readonly CasState[]> {
    return this.passed(() => this.store.readAll(keys))
  }

  swapAll(swaps: readonly CasSwap[]): ReturnType<Required<Omit<CasStore, 'step' | 'connectionsOpened'>>['swapAll']> {
    return this.passed(() => this.store.swapAll(swaps))
  }

  private passed<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    const { thereMs, backMs, isRequestLost = false, isReplyLost = false, strayMs } = this.passage()
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('the connection broke'))
      if (strayMs !== undefined) {
        this.after(thereMs, fail)
        this.after(thereMs + strayMs, () => void call().catch(() => undefined))
        return
      }
      this.after(thereMs, () => {
        if (isRequestLost) return void this.after(backMs, fail)
        void call().then((answer) => this.after(backMs, () => (isReplyLost ? fail() : resolve(answer))), reject)
      })
    })
  }
}

// Processes race for one key over a network that delays, reorders and loses, and whose answers come after a failure was reported.

const START_MS = 1_700_000_000_000
/** Seeds that found something, in a long run also new ones. */
const SAVED: readonly number[] = [7, 23, 1009, 10_038]
const SEEDS = [...SAVED, ...Array.from({ length: shortOrLong(0, 15) }, (_, i) => 10_000 + i)]

interface Race {
  readonly seed: number
  readonly policy: Policy
  readonly processes: number
  readonly steps: number
  /** Chances of a lost request, a lost reply, a stray request. */
  readonly losses: readonly [number, number, number]
  readonly mode: 'exact' | 'leased'
  readonly key?: string | readonly string[]
  /** How often a process takes, each millisecond. */
  readonly chance?: number
  readonly slowestMs?: number
  readonly timeoutMs?: number
}

interface Outcome {
  /** By the store's clock. */
  readonly spent: readonly Spent[]
  readonly admitted: number
  /** Tokens of calls whose answer stayed unknown. */
  readonly unknown: number
  readonly store: ReturnType<typeof memoryStore>
  readonly clock: ReturnType<typeof manualClock>
}

/** Runs a race; every millisecond of it is one step of the event loop. */
async function raced({
  seed,
  policy,
  processes,
  steps,
  losses,
  mode,
  key = 'k',
  chance = 0.3,
  slowestMs = 6,
  timeoutMs = 200,
}: Race): Promise<Outcome> {
  const random = new Random(seed)
  const clock = manualClock(START_MS)
  const store = memoryStore({ clock })
  const [lostRequest, lostReply, stray] = losses
  const passage = (): Passage => ({
    thereMs: random.fraction() * slowestMs,
    backMs: random.fraction() * slowestMs,
    isRequestLost: random.chance(lostRequest),
    isReplyLost: random.chance(lostReply),
    ...(random.chance(stray) && { strayMs: random.fraction() * 30 }),
  })
  const limiters = Array.from({ length: processes }, (_, i) => {
    // Clocks are minutes apart and differ in pace.
    const own: Clock = { nowMs: () => clock.nowMs() * (1 + (i - 1) * 2e-4) + i * 60_000, after: (ms, call) => clock.after(ms, call) }
    const unreliable = new UnreliableStore(store, (ms, call) => clock.after(ms, call), passage)
    return createLimiter(policy, { store: casStore(unreliable), clock: own, mode, outage: 'closed', timeout: timeoutMs })
  })
  const spent: Spent[] = []
  let unknown = 0
  let pending = 0
  const take = async (): Promise<void> => {
    const cost = random.integer(1, 3)
    const fromUs = clock.nowMs() * 1000
    pending++
    const answer = await Promise.resolve(random.pick(limiters).take(key as string, cost)).catch(() => undefined)
    pending--
    const toUs = clock.nowMs() * 1000
    if (answer?.allowed === true) for (let i = 0; i < cost; i++) spent.push({ fromUs, toUs })
    else if (answer === undefined || answer.source === 'outage') unknown += cost
  }
  for (let step = 0; step < steps || pending > 0; step++) {
    if (step < steps && random.chance(chance * processes)) void take()
    clock.advance(1)
    await new Promise(setImmediate)
    assert.ok(step < steps + 5000, 'a call never ends')
  }
  // Stray requests arrive.
  clock.advance(60)
  await new Promise(setImmediate)
  for (const limiter of limiters) limiter.close()
  return { spent, admitted: spent.length, unknown, store, clock }
}

const SPECS: readonly SinglePolicySpec[] = [
  { algorithm: 'token-bucket', limit: 200, windowMs: 1000, burst: 20 },
  { algorithm: 'fixed-window', limit: 20, windowMs: 100 },
  { algorithm: 'sliding-window', limit: 20, windowMs: 100 },
  { algorithm: 'sliding-log', limit: 20, windowMs: 100 },
]

for (const spec of SPECS) {
  const policy = policyOf(spec)
  test(`I1: processes that race over a store never let more pass than a ${spec.algorithm}, whatever the network loses`, async () => {
    for (const seed of SEEDS) {
      const { spent } = await raced({ seed, policy, processes: 4, steps: 400, losses: [0.03, 0.03, 0.02], mode: 'exact' })
      assert.ok(spent.length > 20, `seed ${seed}: ${spent.length} passed`)
      assert.deepEqual(surelyOver(spent, budgetOf(spec)), undefined, `seed ${seed}`)
      if (spec.algorithm !== 'fixed-window') continue
      const windows = new Map<number, number>()
      for (const { fromUs, toUs } of spent) {
        const window = Math.floor(fromUs / 100_000)
        if (window === Math.floor(toUs / 100_000)) windows.set(window, (windows.get(window) ?? 0) + 1)
      }
      for (const count of windows.values()) assert.ok(count <= 20, `seed ${seed}: ${count} in one window`)
    }
  })
}

const PLENTY = 100_000
const ALL = fixedWindow({ limit: PLENTY, window: '30d', name: 'all' })

/** What the store says about the keys of a race once it is over. */
async function leftAfter(policy: Policy, { store, clock }: Outcome, key: string | readonly string[] = 'k'): Promise<Decision> {
  const limiter = createLimiter(policy, { store: casStore(store), clock, mode: 'exact' })
  const decision = await limiter.peek(key as string)
  limiter.close()
  return decision
}

/** Of calls that ended as an outage it is unknown; of all others not a token is missing or too many. */
function checkCharged(charged: number, { admitted, unknown }: Outcome, seed: number): void {
  assert.ok(
    charged >= admitted && charged <= admitted + unknown,
    `seed ${seed}: ${charged} charged, ${admitted} passed, ${unknown} unknown`,
  )
}

test('I11: what passed is what the store has charged, and no lost reply is charged twice', async () => {
  const all = { admitted: 0, unknown: 0 }
  for (const seed of SEEDS) {
    const outcome = await raced({
      seed,
      policy: ALL,
      processes: 4,
      steps: 300,
      losses: [0.03, 0.06, 0.02],
      mode: 'exact',
      timeoutMs: 2000,
    })
    const { admitted, unknown } = outcome
    assert.ok(admitted > 50)
    checkCharged(PLENTY - (await leftAfter(ALL, outcome)).remaining, outcome, seed)
    all.admitted += admitted
    all.unknown += unknown
  }
  assert.ok(all.unknown <= all.admitted / 10, `${all.unknown} of ${all.admitted} unknown`)
})

test('without faults every call is decided, by few writes', async () => {
  for (const seed of SEEDS.slice(0, 5)) {
    const race = { seed, policy: ALL, processes: 4, steps: 200, losses: [0, 0, 0], mode: 'exact', timeoutMs: 2000 } as const
    const outcome = await raced(race)
    assert.equal(PLENTY - (await leftAfter(ALL, outcome)).remaining, outcome.admitted)
    assert.equal(outcome.unknown, 0)
  }
})

test('I9: leased over a store that loses calls, never more passes than the policy', async () => {
  const policy = tokenBucket({ limit: 1000, window: '1s', burst: 300 })
  for (const seed of SEEDS) {
    const { spent } = await raced({ seed, policy, processes: 4, steps: 400, losses: [0.03, 0.03, 0.02], mode: 'leased', chance: 1 })
    assert.ok(spent.length > 50, `seed ${seed}: ${spent.length}`)
    assert.deepEqual(
      surelyOver(spent, (us) => 300 + us / 1000),
      undefined,
      `seed ${seed}`,
    )
  }
})

test('allOf over a store with transactions charges all policies or none', async () => {
  const user = fixedWindow({ limit: 60, window: '30d', name: 'user' })
  const tenant = fixedWindow({ limit: PLENTY, window: '30d', name: 'tenant' })
  const policy = allOf([user, tenant], { name: 'both' })
  for (const seed of SEEDS) {
    const race = {
      seed,
      policy,
      processes: 3,
      steps: 200,
      losses: [0.03, 0.05, 0.02],
      mode: 'exact',
      key: ['u', 't'],
      timeoutMs: 2000,
    } as const
    const outcome = await raced(race)
    const [first, second] = (await leftAfter(policy, outcome, ['u', 't'])).parts ?? []
    const charged = PLENTY - (second?.remaining ?? 0)
    assert.equal(60 - (first?.remaining ?? 0), charged, `seed ${seed}`)
    checkCharged(charged, outcome, seed)
    assert.ok(outcome.admitted <= 60, `seed ${seed}: ${outcome.admitted}`)
  }
})

test('permits are never more in flight than the limit, and a released one is free again', async () => {
  const clock = manualClock(START_MS)
  const store = memoryStore({ clock })
  const policy = concurrency({ limit: 3, ttl: '10s' })
  const limiters = [0, 1].map(() => createLimiter(policy, { store: casStore(store), clock }))
  const [one, other] = limiters as [(typeof limiters)[0], (typeof limiters)[0]]
  const permits = await Promise.all([one.take('k'), other.take('k'), one.take('k'), other.take('k')])
  assert.deepEqual(permits.map(({ allowed }) => allowed).sort(), [false, true, true, true])
  const held = permits.filter(({ allowed }) => allowed)
  clock.advance(6000)
  assert.equal(await held[0]?.heartbeat(), true)
  assert.equal(await held[1]?.release(), true)
  assert.equal(await held[1]?.release(), false)
  assert.equal((await other.take('k')).allowed, true)
  clock.advance(5000)
  // The third permit ended by its ttl, the renewed one did not.
  assert.equal(await held[2]?.heartbeat(), false)
  assert.equal(await held[0]?.release(), true)
  assert.equal((await one.peek('k')).remaining, 2)
  for (const limiter of limiters) limiter.close()
})
