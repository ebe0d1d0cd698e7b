import { checkedHotKeys, type HotKeys, TopLists } from '../decision/hot-keys.js'
import { PolicyError, StoreError } from '../errors.js'
import { checkNumber, checkOneOf, checkOptions } from '../options/option-checks.js'
import { type CallRate, intervalNsOf, LONGEST_NS } from '../rate-table/call-rate.js'
import { checkCallKey, checkQuantity, throttled } from '../rate-table/checked-call.js'
import { createRateTable } from '../rate-table/create-rate-table.js'
import type { RateTable, Throttled } from '../rate-table/rate-table.js'
import { CallGuard, KeyFault } from '../shared/calls/call-guard.js'
import { CountedShare, type LocalShare, localShareOf, newNodeId, type OutageMode } from '../shared/outage/local-share.js'
import { checkedTimeoutMs, type SharedOptions } from '../shared/shared-options.js'
import { preciseClock } from '../time/clock.js'
import type { Duration } from '../time/duration.js'
import type { CommandRunner } from './command-runner.js'
import { countNodes } from './node-count.js'
import { hashSlot, RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { type RedisClient, runnerFor } from './runner-for.js'
import { CALL_RATE_SCRIPT } from './scripts.gen.js'

/** What {@link createRedisRateTable} takes. */
export interface RedisRateTableOptions {
  /** Created, connected and closed by you. */
  readonly client: RedisClient
  /** The prefix of all keys in Redis, default `sluicegate`. */
  readonly prefix?: string
  /** How long a call may take, 1 ms to 1 minute, default 100 ms. */
  readonly timeout?: Duration
  /** What decides in an outage: a table of this process with `share` of each rate (`local`, default), or all calls pass or none does. */
  readonly outage?: OutageMode
  /** Above 0 to 1. Default: 1 divided by the number of tables with this prefix, as for a limiter ({@link SharedOptions.share}). */
  readonly share?: number
  /** How many keys each list of {@link RedisRateTable.hotKeys} follows, 0 to 10,000; default 0. */
  readonly hotKeys?: number
}

/** Keys in Redis or Valkey whose rate comes with each call. */
export interface RedisRateTable {
  /**
   * As {@link RateTable.throttle}, in one call to the server, on its clock. In an outage it resolves with what the option says.
   *
   * Rejects with `PolicyError` as that throws.
   */
  throttle(key: string, rate: CallRate, quantity?: number): Promise<Throttled>
  /** Calls decided without the server since the table was created. */
  readonly outageDecisions: number
  /** The `n` keys with the most calls of this process, and the `n` with the most denials, approximately; empty without the option `hotKeys`. Default 10. */
  hotKeys(n?: number): HotKeys
  close(): void
}

const OPTIONS = ['client', 'prefix', 'timeout', 'outage', 'share', 'hotKeys']
/** Why a call in an outage that is denied without a table should come back: the server is called again after a second. */
const CLOSED_RETRY_S = 1

/**
 * The rate table of {@link createRateTable} in Redis or Valkey, shared by all processes with the same prefix: exact, one script per call.
 *
 * @throws {PolicyError} `CLIENT_INVALID`, and on an unknown option or one out of range.
 * @example
 * const table = createRedisRateTable({ client: await createClient().connect() })
 * const { limited } = await table.throttle('user:42', { maxBurst: 15, count: 30, periodS: 60 })
 */
export function createRedisRateTable(options: RedisRateTableOptions): RedisRateTable {
  const own = checkOptions(options, OPTIONS, '{ client }', 'createRedisRateTable()')
  return rateTableOver(runnerFor(own.client), own)
}

/** Over any client. */
export function rateTableOver(runner: CommandRunner, options: Omit<RedisRateTableOptions, 'client'>): RedisRateTable {
  const { timeout, outage = 'local', share: givenShare } = options
  const timeoutMs = checkedTimeoutMs(timeout)
  checkOneOf('outage', outage, ['local', 'open', 'closed'])
  if (givenShare !== undefined) checkNumber('share', givenShare, Number.MIN_VALUE, 1)
  const keys = new RedisKeys(options.prefix ?? 'sluicegate')
  const id = newNodeId()
  // No policy has an empty name.
  const share = localShareOf(outage, givenShare, () => new CountedShare(preciseClock(), () => countNodes(runner, keys, [''], id)))
  return new ScriptedRateTable(runner, keys, timeoutMs, { outage, share }, new TopLists(checkedHotKeys(options.hotKeys)))
}

class ScriptedRateTable implements RedisRateTable {
  outageDecisions = 0
  readonly #runner: CommandRunner
  readonly #keys: RedisKeys
  readonly #guard: CallGuard
  readonly #outage: OutageMode
  readonly #share: LocalShare
  readonly #before: string
  readonly #top: TopLists
  #local: RateTable | undefined
  #isClosed = false

  constructor(
    runner: CommandRunner,
    keys: RedisKeys,
    timeoutMs: number,
    { outage, share }: { readonly outage: OutageMode; readonly share: LocalShare },
    top: TopLists,
  ) {
    this.#top = top
    this.#runner = runner
    this.#keys = keys
    this.#outage = outage
    this.#share = share
    this.#before = keys.before('call', '')
    const slotOf = (key: string): number | undefined => (runner.isCluster ? hashSlot(keys.hashedOf(key)) : undefined)
    const serverOf = (key: string): string | undefined => {
      const slot = slotOf(key)
      return slot === undefined ? undefined : runner.serverOf(slot)
    }
    this.#guard = new CallGuard({ slotOf, serverOf }, preciseClock(), timeoutMs)
  }

  async throttle(key: string, rate: CallRate, quantity = 1): Promise<Throttled> {
    const answer = await this.#decided(key, rate, quantity)
    if (quantity > 0) this.#top.count(key, !answer.limited)
    return answer
  }

  hotKeys(n?: number): HotKeys {
    return this.#top.top(n)
  }

  async #decided(key: string, rate: CallRate, quantity: number): Promise<Throttled> {
    if (this.#isClosed) throw new StoreError('CLOSED', 'this rate table is closed: create another one')
    checkCallKey(key)
    checkQuantity(quantity)
    const intervalNs = intervalNsOf(rate)
    const limit = rate.maxBurst + 1
    const tokens = Math.min(quantity, limit + 1)
    const added = timeOf(intervalNs, tokens)
    const most = timeOf(intervalNs, limit)
    const args = [...added, ...most].map(String)
    try {
      const [passed, owedUs, owedNs] = await this.#guard.guarded(key, (signal) =>
        runScript(this.#runner, CALL_RATE_SCRIPT, [this.#before + this.#keys.after(key)], args, threeIntegers, signal),
      )
      this.#share.answered()
      const left = wholeUs(most[0] - owedUs, most[1] - owedNs)
      const lateUs = wholeUs(owedUs + added[0] - most[0], owedNs + added[1] - most[1])
      const lateMs = tokens > limit ? -1 : Math.floor(lateUs / 1000)
      return throttled(rate, intervalNs, { limited: passed === 0, leftUs: left, lateMs, owedMs: Math.floor(owedUs / 1000) })
    } catch (error) {
      if (error instanceof PolicyError) throw error
      return this.#inOutage(key, rate, quantity)
    }
  }

  close(): void {
    this.#isClosed = true
    this.#local?.close()
  }

  #inOutage(key: string, rate: CallRate, quantity: number): Throttled {
    this.outageDecisions++
    const limit = rate.maxBurst + 1
    if (this.#outage === 'open') return { limited: false, limit, remaining: 0, retryAfterS: -1, resetAfterS: 0 }
    if (this.#outage === 'closed') return { limited: true, limit, remaining: 0, retryAfterS: CLOSED_RETRY_S, resetAfterS: CLOSED_RETRY_S }
    this.#local ??= createRateTable()
    const share = this.#share.forOutage()
    const burst = Math.max(1, Math.floor(limit * share))
    const longestS = Math.floor((LONGEST_NS / 1e9 / burst) * rate.count)
    const own = { maxBurst: burst - 1, count: rate.count, periodS: Math.min(longestS, Math.ceil(rate.periodS / share)) }
    return { ...this.#local.throttle(key, own, quantity), limit }
  }
}

/** What `tokens` add, in whole microseconds and the nanoseconds beyond them. */
function timeOf(intervalNs: number, tokens: number): readonly [us: number, ns: number] {
  const ns = intervalNs * tokens
  if (ns <= Number.MAX_SAFE_INTEGER) return [Math.floor(ns / 1000), ns % 1000]
  const exact = BigInt(intervalNs) * BigInt(tokens)
  return [Number(exact / 1000n), Number(exact % 1000n)]
}

/** Whole microseconds, truncated towards 0. */
function wholeUs(us: number, ns: number): number {
  const carried = us + Math.floor(ns / 1000)
  const rest = ns - Math.floor(ns / 1000) * 1000
  return carried < 0 && rest > 0 ? carried + 1 : carried
}

function threeIntegers(reply: unknown): readonly [number, number, number] {
  if (Array.isArray(reply) && reply.length === 3 && reply.every(Number.isInteger)) return reply as [number, number, number]
  throw new KeyFault('the reply of the script has another form')
}
