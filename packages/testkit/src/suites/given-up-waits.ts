import assert from 'node:assert/strict'
import type { Awaitable } from '../../../sluicegate/dist/awaitable.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { fixedWindow, gcra, type Policy, slidingLog, slidingWindow, tokenBucket, type WaitOptions } from '../../../sluicegate/dist/index.js'
import { Random } from '../random.js'
import { everyNth } from '../run-length.js'

/** A limiter on which waits are given up, and another over the same keys that stays open. */
export interface WaitsSubject {
  readonly limiter: { wait(key: string, options?: WaitOptions): Promise<Decision>; close(): void }
  readonly witness: { take(key: string, cost?: number): Awaitable<Decision>; peek(key: string, cost?: number): Awaitable<Decision> }
  /** Lets all that is on its way arrive. */
  settle(): Promise<void>
  /** Whether those who are served at the same reading of the clock may hear of it in any order, as over a channel. */
  readonly isApart?: boolean
  /** Moves the clock; absent where time is real. */
  advance?(ms: number): Promise<void>
  stop(): Awaitable<void>
}

const WINDOW_MS = 10_000
const LIMIT = 20
const options = { limit: LIMIT, window: WINDOW_MS, name: 'given-up' }
const ALGORITHMS: readonly Policy[] = [
  tokenBucket(options),
  gcra(options),
  fixedWindow(options),
  slidingWindow(options),
  slidingLog(options),
]
const WAYS = ['abort all', 'abort a random half', 'abort the front', 'time out', 'close'] as const

/** As declared: a key is closed no longer than one request alone may have to wait. */
function boundMs({ algorithm }: Policy): number {
  return (algorithm === 'sliding-window' ? 2 : 1) * WINDOW_MS * (65 / 64)
}

/** That waits which are given up leave a key as open as if they had never been, for each algorithm and each way to give up. */
export function givenUpWaits(name: string, make: (policy: Policy) => Awaitable<WaitsSubject>, waits: number): void {
  // In a short run each algorithm has some of the ways, by turns.
  for (const [i, policy] of ALGORITHMS.entries()) {
    for (const [j, way] of WAYS.entries()) {
      everyNth(i + 2 * j + 1, 3)(
        `${name}, ${policy.algorithm}: after ${way} of ${waits} waits the key is open within the declared time, and who stays is served in order`,
        async () => {
          const subject = await make(policy)
          try {
            await gaveUp(subject, policy, way, waits)
          } finally {
            await subject.stop()
          }
        },
      )
    }
  }
}

async function gaveUp(subject: WaitsSubject, policy: Policy, way: (typeof WAYS)[number], waits: number): Promise<void> {
  const { limiter, witness, settle, advance } = subject
  const random = new Random(20_261_122)
  assert.equal((await witness.take('k', LIMIT)).allowed, true)
  const served: number[] = []
  const controllers = Array.from({ length: waits }, () => new AbortController())
  const ends = controllers.map(async ({ signal }, i) => {
    const cost = 1 + (i % 3)
    const { allowed } = await limiter.wait('k', { cost, signal, ...(way === 'time out' && { maxWait: i % 50 }) })
    if (allowed) served.push(i)
  })
  const all = Promise.allSettled(ends)
  await settle()
  const isGone = (i: number): boolean => {
    if (way === 'abort a random half') return random.chance(0.5)
    return way === 'abort all' || (way === 'abort the front' && i < waits - 5)
  }
  if (way === 'close') limiter.close()
  for (const [i, controller] of controllers.entries()) if (isGone(i)) controller.abort(new Error('enough'))
  await settle()
  if (way === 'time out') await advance?.(50)
  if (way === 'abort a random half' || way === 'abort the front') {
    if (advance !== undefined) {
      const wanted = way === 'abort the front' ? 5 : 40
      for (let ms = 0; served.length < wanted && ms < 20 * WINDOW_MS; ms += 100) {
        const before = served.length
        await advance(100)
        if (subject.isApart) served.splice(before, served.length, ...served.slice(before).sort((a, b) => a - b))
      }
      assert.ok(served.length >= wanted, `${served.length} were served`)
      assert.deepEqual(
        served,
        served.toSorted((a, b) => a - b),
      )
    }
    for (const controller of controllers) controller.abort(new Error('enough'))
  }
  await settle()
  if (advance !== undefined || way !== 'time out') await all
  const { retryAfterMs } = await witness.peek('k', 1)
  assert.ok(retryAfterMs <= boundMs(policy), `closed for ${retryAfterMs} ms`)
  if (advance === undefined) return
  await advance(Math.ceil(2 * boundMs(policy)))
  assert.equal((await witness.take('k', LIMIT)).allowed, true)
}
