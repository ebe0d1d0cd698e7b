import { StoreError } from '../errors.js'

/** What the compiled core calls back. Rare. */
export interface CoreHost {
  policyChanged(): void
  /** Where a window of the calendar of a block's policy begins and ends, by a time in it; microseconds since the Unix epoch. */
  calendarWindowStart(block: number, us: number): number
  calendarWindowEnd(block: number, us: number): number
}

/**
 * Typed calls into one thread's instance of the core. Keys are the two halves of a fingerprint, times microseconds since the
 * Unix epoch, debts units of the policy in force (see `policy-numbers.ts`).
 */
export interface Core {
  create(section: number, lines: number, denyWhenFull: boolean): void
  /** Right after it: only the first lines of the table are in use until it needs more. */
  addParts(firstLines: number, secondLines: number): void
  /** Right after it: shared counters, and the budget, of newcomers that find no room. */
  admitOverflow(counters: number, count: number, limit: number, windowUs: number): void
  attach(section: number): void
  /** Of this thread's random numbers. */
  seed(low: number, high: number): void
  look(): void
  /** Does beforehand what a change of policy has to wait for. */
  prepare(): boolean
  /** Makes every word of the table one of the policy in force, and finishes what others left. False: it could not. */
  migrateAll(): boolean
  propose(): number
  /** What came of it: `IN_FORCE`, or `OVERTAKEN`: count it out again, from the policy in force by now; or `GIVEN_UP`. */
  update(block: number, nowUs: number, seenEpoch: number): number
  policyRecord(): number
  /** Whether the data read from that record is consistent: no thread has begun to write another policy there. */
  isWhole(): boolean
  /** The debt after it, -1 - debt when denied, NaN when {@link Core.whyUnanswered}. For buckets and GCRA alone. */
  take(low: number, high: number, nowUs: number, tokens: number): number
  /** The same for any form. */
  takeAny(low: number, high: number, nowUs: number, tokens: number): number
  /** The same, up to `mostUs` ahead; {@link Core.waitUs} says how far. */
  reserve(low: number, high: number, nowUs: number, tokens: number, mostUs: number): number
  /**
   * A take at a rate of its own, in a table without a policy: 0 or more if it passes, less if not, or NaN. {@link Core.leftUs},
   * {@link Core.owedMs} and {@link Core.lateMs} say the rest about it.
   */
  takeAtRate(low: number, high: number, nowUs: number, intervalNs: number, burst: number, tokens: number): number
  leftUs(): number
  owedMs(): number
  lateMs(): number
  /** The debt, or NaN; so do the next five. `tokens` are what `untilFree` will be asked for. */
  peek(low: number, high: number, nowUs: number, tokens: number): number
  refund(low: number, high: number, nowUs: number, tokens: number): number
  penalize(low: number, high: number, nowUs: number, tokens: number): number
  cancel(low: number, high: number, nowUs: number, tokens: number, bound: number): number
  reset(low: number, high: number, nowUs: number): number
  /** The microseconds left, or NaN. */
  ban(low: number, high: number, nowUs: number, us: number): number
  banLeft(low: number, high: number, nowUs: number): number
  /** About the key of the last call; for buckets and GCRA the debt says it all. */
  untilFree(tokens: number): number
  untilNew(): number
  waitUs(): number
  openDescriptor(): number
  /** A take that is written down in a descriptor. */
  stage(descriptor: number, low: number, high: number, nowUs: number, tokens: number): number
  commit(descriptor: number): boolean
  /** A take among them passed though its key found no room. */
  countOverflow(): void
  closeDescriptor(descriptor: number): void
  /** Lets other threads run, the longer the more attempts were lost to them. */
  yieldAfter(lost: number): void
  /** Counts a call that was given up. */
  giveUp(): void
  /** The permit that the last take gave: what to ask for it by, and when it expires, or does since it was changed last. */
  givenPermit(): number
  givenUntilUs(): number
  /** 1 if changed, with the new expiry in `givenUntilUs`; 0 if the permit had expired or was released; or NaN. */
  changePermit(low: number, high: number, nowUs: number, renew: boolean, given: number, untilUs: number, tokens: number): number
  /** The word at an address, with any ticket there settled. */
  resolvedWord(address: number): bigint
  whyUnanswered(): number
  detailOfUnanswered(): number
  forgotten(): number
}

/** The core of a closed limiter: every call throws. */
export const closedCore = new Proxy({} as Core, {
  get: () => () => {
    throw new StoreError('CLOSED', 'this limiter is closed: create or attach another one')
  },
})
