import type { CasStore } from '../store/cas-store.js'
import { clockChecks } from './clock-checks.js'
import { limiterChecks } from './limiter-checks.js'
import type { Examined } from './store-check.js'
import { byTurns, doorsOf } from './store-doors.js'
import { swapAllChecks } from './swap-all-checks.js'
import { swapChecks } from './swap-checks.js'

/** What {@link storeConformance} is given. */
export interface StoreConformanceOptions {
  /**
   * A store to examine: the same true state each time, best over a connection of its own. It is called twice, before the first test runs.
   *
   * @example connect: () => myStore(new Client())
   */
  readonly connect: () => CasStore | Promise<CasStore>
  /**
   * Registers one test: that of `node:test`, Vitest or Jest.
   *
   * @defaultValue the global `test`
   * @example import { test } from 'node:test'
   */
  readonly test?: (name: string, run: () => Promise<void>) => unknown
  /**
   * Lets time pass on the store's clock.
   *
   * @defaultValue a timer of the runtime: the whole takes some 6 seconds
   * @example wait: async (ms) => clock.advance(ms)
   */
  readonly wait?: (ms: number) => Promise<void>
  /**
   * Begins the keys, which are left to expire.
   *
   * @defaultValue another in each run
   * @example prefix: 'test:'
   */
  readonly prefix?: string
}

/**
 * Registers the tests that every store has to pass: it finds lost updates, versions that come again, stale reads, clocks that run back or count
 * other units, values that are forgotten too early, keys that are taken for one another, and swaps of several keys that are made in part. What one
 * key promises is asked of every call by which it is read and swapped.
 *
 * @example
 * import { test } from 'node:test'
 * storeConformance({ test, connect: () => myStore(client) })
 */
export function storeConformance({ connect, test, wait = sleep, prefix }: StoreConformanceOptions): void {
  const register = test ?? (globalThis as unknown as { test?: NonNullable<typeof test> }).test
  if (typeof register !== 'function')
    throw new TypeError("storeConformance: there is no global test(): pass it, as import { test } from 'node:test'")
  const begin = prefix ?? `conformance-${crypto.randomUUID()}:`
  let keys = 0
  let examined: Promise<Examined> | undefined
  const connected = async (): Promise<Examined> => {
    const [one, other] = [await connect(), await connect()]
    const freshKey = (): string => `${begin}${++keys}`
    const doors = doorsOf(other, freshKey)
    return { one, other: byTurns(other, doors), doors, wait, freshKey }
  }
  for (const check of [...swapChecks, ...clockChecks, ...swapAllChecks, ...limiterChecks]) {
    register(check.name, async () => {
      examined ??= connected()
      await check.run(await examined)
    })
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
