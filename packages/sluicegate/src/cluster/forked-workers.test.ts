import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { everyNth, firstExcess, longTest, shortOrLong, specOf } from 'sluicegate-testkit'
import type { WorkerCommand, WorkerReport, WorkerStart } from 'sluicegate-testkit/cluster/cluster-worker.js'
import { allOf, concurrency, fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket } from '../index.js'
import type { SharedOptions } from '../shared/shared-options.js'
import { type ServedLimiter, type ServeOptions, serveLimiter } from './serve-limiter.js'

/** A worker in a separate process, which runs commands. */
class ForkedWorker {
  readonly child: ChildProcess

  constructor(start: WorkerStart) {
    this.child = fork(fileURLToPath(import.meta.resolve('sluicegate-testkit/cluster/cluster-worker.js')), [JSON.stringify(start)])
  }

  /** Messages that are not of the library are the caller's own. */
  async run(command: WorkerCommand): Promise<WorkerReport> {
    const answered = new Promise<WorkerReport>((resolve, reject) => {
      const { child } = this
      const done = (settle: () => void): void => {
        child.removeListener('message', onMessage)
        child.removeListener('exit', onExit)
        settle()
      }
      const onMessage = (message: unknown): void => {
        if (typeof message !== 'object' || message === null || !('ran' in message)) return
        done(() => resolve(message as unknown as WorkerReport))
      }
      const onExit = (): void => done(() => reject(new Error('the worker ended')))
      child.on('message', onMessage)
      child.on('exit', onExit)
    })
    this.child.send(command)
    return answered
  }

  /** Waits for the end of its process. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = once(this.child, 'exit')
    this.child.kill(signal)
    await gone
  }
}

const WORKERS = shortOrLong(2, 3)
/** So late that no busy machine loses an answer by it, nor a token that came too late to be spent: it is good for twice the horizon. */
const PATIENT = { timeout: 60_000 } as const
const LONG: ServeOptions = { lease: 10_000 }
/** A window that does not end while a test runs. */
const YEAR = '365d'

interface Fleet {
  readonly served: ServedLimiter
  readonly workers: ForkedWorker[]
  /** Tokens that were handed to a worker, by takes and leases. */
  handed(worker: ForkedWorker): number
  start(): ForkedWorker
}

async function withFleet(
  policy: Policy,
  body: (fleet: Fleet) => Promise<void>,
  { workers: count = WORKERS, ...options }: ServeOptions & { workers?: number; worker?: Partial<SharedOptions> } = {},
): Promise<void> {
  const { worker: own = {}, ...serve } = options
  const served = serveLimiter(policy, serve)
  const workers: ForkedWorker[] = []
  const handed = new Map<ForkedWorker, number>()
  const start = (): ForkedWorker => {
    const worker = new ForkedWorker({ policy, options: { ...PATIENT, ...own } })
    workers.push(worker)
    const { child } = worker
    const verbs = new Map<unknown, unknown>()
    child.on('message', (message) => {
      for (const [id, verb] of partsOf(message)) verbs.set(id, verb)
    })
    const send = child.send.bind(child) as (message: unknown, done: () => void) => boolean
    child.send = ((message: unknown, done: () => void) => {
      handed.set(worker, (handed.get(worker) ?? 0) + tokensIn(message, verbs))
      return send(message, done)
    }) as typeof child.send
    served.serve(worker.child)
    return worker
  }
  for (let i = 0; i < count; i++) start()
  try {
    await body({ served, workers, handed: (worker) => handed.get(worker) ?? 0, start })
  } finally {
    await Promise.all(workers.map((worker) => worker.end('SIGKILL')))
    served.close()
  }
}

const EXACT_TOTALS: readonly (readonly [policy: Policy, total: number, options?: ServeOptions])[] = [
  [tokenBucket({ limit: 1, window: '24h', burst: 1000, name: 'x' }), 1000],
  [gcra({ limit: 1, window: '24h', burst: 1000, name: 'x' }), 1000],
  [fixedWindow({ limit: 1000, window: YEAR, name: 'x' }), 1000],
  [fixedWindow({ limit: 1000, window: YEAR, name: 'x' }), 1000, { mode: 'exact' }],
  [slidingWindow({ limit: 1000, window: YEAR, name: 'x' }), 1000],
  [slidingWindow({ limit: 1000, window: YEAR, name: 'x' }), 1000, { mode: 'exact' }],
  [slidingLog({ limit: 1000, window: '24h', name: 'x' }), 1000],
  [slidingLog({ limit: 1000, window: '24h', name: 'x' }), 1000, { mode: 'exact' }],
  [concurrency({ limit: 500, ttl: '24h', name: 'x' }), 500],
  [allOf([fixedWindow({ limit: 1000, window: YEAR }), slidingWindow({ limit: 800, window: YEAR })], { name: 'x' }), 800],
]

for (const [i, [policy, total, options = LONG]] of EXACT_TOTALS.entries()) {
  everyNth(i, 10)(
    `${policy.algorithm}, ${options.mode ?? 'leased if it can be'}: ${WORKERS} processes together pass exactly ${total}`,
    () =>
      withFleet(
        policy,
        async ({ workers }) => {
          const reports = await Promise.all(workers.map((worker) => worker.run({ run: 'drain', key: 'all', denials: 20 })))
          assert.equal(sum(reports.map(({ admittedUs }) => admittedUs.length)), total)
          assert.deepEqual(
            reports.map(({ sources }) => sources.outage),
            workers.map(() => undefined),
          )
        },
        options,
      ),
  )
}

/** At least what is there at once: the burst without what flows back during a lease. */
const LEAST_PASSED = 400
const MOST_MS = 30_000

for (const make of [tokenBucket, gcra]) {
  const inTime = make === gcra ? test : longTest
  const policy = make({ limit: 2000, window: '1s', burst: 600, name: 'x' })
  inTime(
    `I1 ${policy.algorithm}, leased: what ${WORKERS} processes pass, one of them stopped for three leases, is within the policy over every interval`,
    () =>
      withFleet(policy, async ({ workers }) => {
        const stopped = workers[0] as ForkedWorker
        const latestMs = performance.now() + MOST_MS
        // Again where the machine was too busy for leases to come in time: the bound holds each time.
        for (let passed = 0; passed < LEAST_PASSED; ) {
          assert.ok(performance.now() < latestMs, `${passed} passed`)
          setTimeout(() => stopped.child.kill('SIGSTOP'), 300)
          setTimeout(() => stopped.child.kill('SIGCONT'), 600)
          const reports = await Promise.all(
            workers.map((worker) => worker.run({ run: 'saturate', key: 'all', callers: 16, ms: shortOrLong(700, 1000) })),
          )
          const admissions = reports.flatMap(({ admittedUs }) => admittedUs.map((atUs) => ({ atUs, cost: 1 })))
          assert.equal(firstExcess(rateOf(policy), admissions), undefined)
          passed = sum(reports.map(({ sources }) => sources.lease ?? 0)) > 0 ? admissions.length : 0
        }
      }),
  )
}

test('I9 a worker that is killed loses no more than what it held: the others pass all the rest', () =>
  withFleet(
    fixedWindow({ limit: 5000, window: YEAR, name: 'x' }),
    async ({ workers, served, handed }) => {
      const [victim, ...others] = workers as [ForkedWorker, ...ForkedWorker[]]
      const got = await victim.run({ run: 'burst', key: 'all', takes: 100 })
      const rest = Promise.all(others.map((worker) => worker.run({ run: 'drain', key: 'all', denials: 20 })))
      void victim.run({ run: 'drain', key: 'all', denials: 20 }).catch(() => undefined)
      await victim.end('SIGKILL')
      const passed = sum((await rest).map(({ admittedUs }) => admittedUs.length))
      assert.equal(got.admittedUs.length, 100)
      assert.equal(handed(victim) + passed, 5000)
      assert.equal(served.limiter.peek('all').remaining, 0)
    },
    LONG,
  ))

longTest(
  'permits of a worker that is killed come back at once, and one that is asked for again after their release is not given twice',
  () =>
    withFleet(
      concurrency({ limit: 10, ttl: '24h', name: 'x' }),
      async ({ workers, served }) => {
        const [victim, other] = workers as [ForkedWorker, ForkedWorker]
        assert.equal((await victim.run({ run: 'burst', key: 'all', takes: 6 })).admittedUs.length, 6)
        assert.equal((await other.run({ run: 'burst', key: 'all', takes: 6 })).admittedUs.length, 4)
        await victim.end('SIGKILL')
        assert.equal(served.limiter.peek('all').remaining, 6)
        const { released } = await other.run({ run: 'release' })
        assert.equal(released, 4)
        assert.equal((await other.run({ run: 'release' })).released, 0)
        assert.equal(served.limiter.peek('all').remaining, 10)
      },
      { workers: 2 },
    ),
)

longTest('1,000 takes at once pass exactly as many as there are, in one message', () =>
  withFleet(
    concurrency({ limit: 300, ttl: '24h', name: 'x' }),
    async ({ workers: [worker] }) => {
      let messages = 0
      worker?.child.on('message', (message: unknown) => {
        if (Array.isArray(message)) messages++
      })
      await worker?.run({ run: 'burst', key: 'another', takes: 1 })
      messages = 0
      const report = await worker?.run({ run: 'burst', key: 'all', takes: 1000 })
      assert.equal(report?.admittedUs.length, 300)
      assert.equal(report?.denied, 700)
      assert.equal(messages, 1)
    },
    { workers: 1 },
  ),
)

longTest('1,000 takes at once of a leased policy pass exactly as many as there are, with a few questions', () =>
  withFleet(
    fixedWindow({ limit: 300, window: YEAR, name: 'x' }),
    async ({ workers: [worker] }) => {
      await worker?.run({ run: 'burst', key: 'another', takes: 1 })
      const before = await worker?.run({ run: 'stats' })
      const report = await worker?.run({ run: 'burst', key: 'all', takes: 1000 })
      assert.equal(report?.admittedUs.length, 300)
      assert.ok((report?.storeCalls ?? 0) - (before?.storeCalls ?? 0) <= 3)
    },
    { workers: 1, ...LONG },
  ),
)

test('a worker that comes later finds what was spent, and the policy of now; an update reaches all', () =>
  withFleet(
    fixedWindow({ limit: 100, window: YEAR, name: 'x' }),
    async ({ workers, served, start }) => {
      const limits = async (): Promise<readonly number[]> =>
        Promise.all(workers.map(async (worker) => (await worker.run({ run: 'policy' })).limit))
      const [first] = workers as [ForkedWorker]
      await first.run({ run: 'drain', key: 'all', denials: 20 })
      served.update(fixedWindow({ limit: 150, window: YEAR }))
      const late = start()
      const { admittedUs } = await late.run({ run: 'drain', key: 'all', denials: 20 })
      assert.equal(admittedUs.length, 50)
      assert.deepEqual(await limits(), [150, 150])
      assert.throws(() => served.update(slidingLog({ limit: 150, window: YEAR })), { code: 'ALGORITHM_CHANGE' })
      await late.run({ run: 'update', policy: fixedWindow({ limit: 170, window: YEAR }) })
      while ((await limits()).some((limit) => limit !== 170));
      assert.equal((await late.run({ run: 'drain', key: 'all', denials: 20 })).admittedUs.length, 20)
      assert.equal(served.policy.name, 'x')
    },
    { workers: 1, ...LONG },
  ))

/** Answers to takes are [id, 1, limit, ...], to leases [id, tokens, end, ...]. @param verbs of the requests, by their ids. */
function tokensIn(message: unknown, verbs: ReadonlyMap<unknown, unknown>): number {
  return sum(partsOf(message).map(([id, first = 0]) => (verbs.get(id) === 'take' || verbs.get(id) === 'lease' ? (first as number) : 0)))
}

/** Requests or answers. */
function partsOf(message: unknown): readonly (readonly unknown[])[] {
  return Array.isArray(message) && Array.isArray(message[3]) ? message[3] : []
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function rateOf(policy: Policy): Parameters<typeof firstExcess>[0] {
  return specOf(policy) as Parameters<typeof firstExcess>[0]
}
