import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createMemory, sectionAt } from './core-memory.js'
import { attachLimiter, createLimiter, type LimiterHandle, tokenBucket } from './index.js'
import { OpenCore } from './open-core.js'
import { PolicyChange, publishedPolicy } from './policy-block.js'

// Policies of different units, none of which gives a token back while the test runs: no key may ever get more than the burst.
const POLICIES = (
  [
    [1, '30d'],
    [2, '59d'],
    [7, '211d'],
    [1, '29d'],
    [3, '100d'],
  ] as const
).map(([limit, window], i) => tokenBucket({ limit, window, burst: 5, name: String.fromCharCode(97 + i).repeat(20 * (i + 1)) }))
const KNOWN = new Set(POLICIES.map((policy) => JSON.stringify(policy)))
const KEYS = 50
const ROUNDS = 20_000

interface Report {
  readonly passed: readonly number[]
  readonly torn: readonly string[]
}

function storm(handle: LimiterHandle, thread: number): Report {
  const limiter = attachLimiter(handle)
  const passed = new Array<number>(KEYS).fill(0)
  const torn: string[] = []
  for (let round = thread; round < ROUNDS; round++) {
    limiter.update(POLICIES[round % POLICIES.length] as (typeof POLICIES)[number])
    const key = round % KEYS
    if (limiter.take(`key ${key}`).allowed) passed[key] = (passed[key] as number) + 1
    const seen = JSON.stringify(limiter.policy)
    if (!KNOWN.has(seen)) torn.push(seen)
  }
  return { passed, torn }
}

if (isMainThread) {
  test('I1: a storm of updates from several threads over-admits no key and mixes no two policies', async () => {
    const limiter = createLimiter(POLICIES[0] as (typeof POLICIES)[number], { maxKeys: 100 })
    const reports = await Promise.all(
      [0, 1, 2, 3].map(async (thread) => {
        const worker = new Worker(new URL(import.meta.url), { workerData: { handle: limiter.handle(), thread } })
        const [report] = (await once(worker, 'message')) as [Report]
        return report
      }),
    )
    assert.deepEqual(
      reports.flatMap(({ torn }) => torn),
      [],
    )
    for (let key = 0; key < KEYS; key++) {
      const total = reports.reduce((sum, { passed }) => sum + (passed[key] as number), 0)
      assert.equal(total, 5, `key ${key}`)
    }
  })

  test('a writer of a policy may pause for any number of changes and spoils none of them', () => {
    const [first, second, third] = POLICIES as [(typeof POLICIES)[0], (typeof POLICIES)[0], (typeof POLICIES)[0]]
    const host = { policyChanged: () => undefined, calendarWindowStart: () => 0, calendarWindowEnd: () => 0 }
    const { address, lines, end } = sectionAt(0, 10, 0)
    const busy = new OpenCore(createMemory(end, false), address, host)
    busy.core.create(address, lines, false)
    new PolicyChange(busy, first).publish(1e12)
    const slow = new OpenCore(busy.memory, address, host)
    slow.core.attach(address)
    const block = slow.core.propose()
    for (let change = 1; change <= 200; change++) {
      new PolicyChange(busy, change % 2 === 0 ? first : second).publish(1e12 + change)
      const description = slow.description(block)
      for (let i = 0; i < third.name.length; i++) description.setUint8(29 + i, third.name.charCodeAt(i))
      assert.deepEqual(publishedPolicy(busy), change % 2 === 0 ? first : second, `change ${change}`)
    }
  })
} else {
  parentPort?.postMessage(storm(workerData.handle, workerData.thread))
}
