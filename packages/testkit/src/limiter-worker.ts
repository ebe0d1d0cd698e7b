import { Script } from 'node:vm'
import { parentPort, workerData } from 'node:worker_threads'
import {
  attachLimiter,
  type Decision,
  type Key,
  type Limiter,
  type LimiterHandle,
  type Permit,
  type Policy,
  type Reservation,
  StoreError,
} from 'sluicegate'
import { Random } from './random.js'
import type { AskedJob, GivenAnswer, Life, StormReport, WorkerJob, WorkerStart } from './worker-job.js'

/** The permits and bookings that one life keeps open. */
const MOST_HELD = 20

/** Calls a limiter until it is stopped. */
function live(limiter: Limiter, { keys, cost, seed, counts, takesOnly }: Life): never {
  const random = new Random(seed)
  const calls = new AnyCall(limiter, random, cost)
  for (;;) {
    const i = random.integer(0, keys.length - 1)
    const key = keys[i] as Key
    if (takesOnly) {
      if (limiter.take(key, cost).allowed) Atomics.add(counts, i + 1, 1)
    } else calls.make(key)
    Atomics.add(counts, 0, 1)
  }
}

/** Every verb there is, those of permits and bookings included. */
class AnyCall {
  readonly #random: Random
  readonly #permits: Permit[] = []
  readonly #bookings: Reservation[] = []
  readonly #verbs: readonly ((key: Key) => unknown)[]

  constructor(limiter: Limiter, random: Random, cost: number) {
    this.#random = random
    const take = (key: Key): void => this.#hold(limiter.take(key, cost))
    const reserve = (key: Key): unknown => kept(this.#bookings, limiter.reserve(key, cost * random.integer(1, 3)))
    this.#verbs = [
      ...[take, take, take, take, take, take],
      ...[reserve, reserve],
      () => random.pick(this.#bookings)?.cancel(),
      () => random.pick(this.#bookings)?.settle(random.integer(0, 4 * cost)),
      () => random.pick(this.#permits)?.release(),
      () => random.pick(this.#permits)?.heartbeat(),
      (key) => limiter.peek(key, cost),
      (key) => limiter.refund(key, cost),
      (key) => limiter.penalize(key, cost),
      (key) => limiter.block(key, random.integer(0, 1)),
      (key) => limiter.reset(key),
    ]
  }

  make(key: Key): void {
    try {
      this.#random.pick(this.#verbs)(key)
    } catch (error) {
      // A full table is an answer too; anything else ends the worker, and the test with it.
      if (!(error instanceof StoreError && error.code === 'TABLE_FULL')) throw error
    }
  }

  #hold(decision: Decision): void {
    if ('release' in decision) kept(this.#permits, decision as Permit)
  }
}

/** Among the last few. */
function kept<Thing>(things: Thing[], thing: Thing): void {
  things.push(thing)
  if (things.length > MOST_HELD) things.shift()
}

// The program of a crew's worker thread: attaches to the limiter of its handle and does one job after another.

type Job<Kind extends WorkerJob['kind']> = Extract<WorkerJob, { kind: Kind }>

const LIFE_MS = 1
const ROUNDS_A_RELEASE = 3

let clockUs: BigInt64Array | undefined
let stepUs = 0n
let readingUs = 0
let handle: LimiterHandle
let limiter: Limiter
if (workerData) await attachTo(workerData as WorkerStart)

parentPort?.on('message', async ({ number, job }: AskedJob) => {
  if (job.kind === 'attach') await attachTo(job)
  const given: GivenAnswer = { number, answer: done(job) }
  parentPort?.postMessage(given)
})

async function attachTo(start: WorkerStart): Promise<void> {
  handle = start.handle as LimiterHandle
  const { attach } = start
  clockUs = start.clockUs
  stepUs = BigInt(start.stepUs ?? 0)
  const clock = clockUs && { nowMs: () => readUs() / 1000 }
  limiter = attach === undefined ? attachLimiter(handle, clock && { clock }) : (await import(attach.module))[attach.name](handle)
}

function readUs(): number {
  readingUs = clockUs === undefined ? 0 : Number(Atomics.add(clockUs, 0, stepUs))
  return readingUs
}

function done(job: WorkerJob): unknown {
  switch (job.kind) {
    case 'attach':
      return undefined
    case 'take':
      return takeAll(job)
    case 'always-ask':
      return alwaysAsk(job)
    case 'for-ever':
      return live(limiter, job)
    case 'lives':
      return liveAndDie(job)
    case 'hold':
      return hold(job)
    case 'storm':
      return storm(job)
    case 'update':
      return limiter.update(job.policy)
    case 'look':
      return { decision: limiter.peek(job.key), policy: limiter.policy }
  }
}

function takeAll({ keys, rounds, cost = 1 }: Job<'take'>): number[] {
  const passed = keys.map(() => 0)
  for (let round = 0; round < rounds; round++) {
    for (const [i, key] of keys.entries()) if (limiter.take(key, cost).allowed) passed[i] = (passed[i] ?? 0) + 1
  }
  return passed
}

function alwaysAsk({ key, cost, stop, deniedUs }: Job<'always-ask'>): number[] {
  const readings: number[] = []
  for (;;) {
    const last = Atomics.load(stop, 0) === 1
    const beganUs = readUs()
    if (limiter.take(key, cost).allowed) readings.push(countedUs())
    else {
      Atomics.store(deniedUs, 0, BigInt(beganUs))
      Atomics.notify(deniedUs, 0)
      if (last) return readings
    }
  }
}

/** When the take that just passed counts: that of a permit not before the last change of its key, which another worker may have made at a later reading. */
function countedUs(): number {
  const { algorithm, windowMs } = limiter.policy
  if (algorithm !== 'concurrency') return readingUs
  const { opened } = limiter as unknown as { readonly opened: { readonly core: { givenUntilUs(): number } } }
  return opened.core.givenUntilUs() - windowMs * 1000
}

/** What ends a script that runs too long is what ends a thread: the engine stops it at the next place where it may, and nothing more runs. */
function liveAndDie({ lives, ...life }: Job<'lives'>): void {
  const script = new Script('liveOnce()')
  for (let i = 0; i < lives; i++) {
    const own = attachLimiter(handle)
    // Its own context would take longer than the life.
    Object.assign(globalThis, { liveOnce: () => live(own, { ...life, seed: life.seed + i }) })
    try {
      script.runInThisContext({ timeout: LIFE_MS })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error
    }
  }
}

function hold({ key, cost, rounds, inFlight }: Job<'hold'>): number {
  const held: Permit[] = []
  let most = 0
  for (let round = 0; round < rounds; round++) {
    const permit = limiter.take(key, cost) as Permit
    if (permit.allowed) {
      held.push(permit)
      most = Math.max(most, Atomics.add(inFlight, 0, cost) + cost)
    }
    if (!permit.allowed || round % ROUNDS_A_RELEASE === 0) {
      const [first] = held.splice(0, 1)
      if (first === undefined) continue
      // Counted before it is given back, as a taken one is after it was given: never more than are in flight.
      Atomics.sub(inFlight, 0, cost)
      first.release()
    }
  }
  Atomics.sub(inFlight, 0, cost * held.length)
  for (const permit of held) permit.release()
  return most
}

function storm({ keys, cost, policies, rounds }: Job<'storm'>): StormReport {
  const known = new Set(policies.flatMap(each))
  const passed = keys.map(() => 0)
  const torn: string[] = []
  for (let round = 0; round < rounds; round++) {
    limiter.update(policies[round % policies.length] as (typeof policies)[number])
    const i = round % keys.length
    if (limiter.take(keys[i] as Key, cost).allowed) passed[i] = (passed[i] as number) + 1
    for (const seen of each(limiter.policy)) if (!known.has(seen)) torn.push(seen)
  }
  return { passed, torn }
}

/** The policy, or each of several: these change one after another. */
function each(policy: Policy): string[] {
  return (policy.policies ?? [policy]).map((single) => JSON.stringify(single))
}
