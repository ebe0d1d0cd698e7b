import { Script } from 'node:vm'
import { parentPort, workerData } from 'node:worker_threads'
import { attachLimiter, type Key, type Limiter, type LimiterHandle, type Permit, type Policy } from 'sluicegate'
import type { Spent } from './history/sure-excess.js'
import { live } from './limiter-life.js'
import type { AskedJob, GivenAnswer, StormReport, WorkerJob, WorkerStart } from './worker-job.js'

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

function alwaysAsk({ key, cost, stop, deniedUs }: Job<'always-ask'>): Spent[] {
  const passed: Spent[] = []
  for (;;) {
    const last = Atomics.load(stop, 0) === 1
    const beganUs = readUs()
    if (limiter.take(key, cost).allowed)
      passed.push({ fromUs: readingUs, toUs: clockUs === undefined ? 0 : Number(Atomics.load(clockUs, 0)) })
    else {
      Atomics.store(deniedUs, 0, BigInt(beganUs))
      Atomics.notify(deniedUs, 0)
      if (last) return passed
    }
  }
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
