import type { Assignment } from './assignment.js'
import { BurstLedger } from './burst-ledger.js'
import { type Grant, Holder } from './holder.js'

/** What all data planes together may admit: `burst + ratePerSecond * length` in any interval, and the tokens by which the bound is exceeded. */
export interface BudgetNumbers {
  readonly ratePerSecond: number
  readonly burst: number
}

/** One message to a data plane. */
export interface QuotaAction {
  readonly holder: Holder
  readonly assignment: Assignment
}

/** Options of {@link QuotaBudget}. */
export interface BudgetOptions {
  /** How long an assignment is in force after its arrival; whole seconds, as data planes count no fractions. */
  readonly ttlSeconds: number
  /** After that time without a request a bucket id is given up. */
  readonly idleMs: number
  /** Until then nothing is assigned, as assignments of an earlier process may be in force. */
  readonly quietUntilMs?: number
  /** Called for a holder of which nothing is in force any more. */
  readonly onForgotten?: (holder: Holder) => void
}

/** Clocks may differ in pace by this part. */
const PACE = 1 / 1_000
/** How late a data plane may end an assignment, and take in one that its connection has acknowledged. */
export const EXPIRY_SLACK_MS = 1_000
/** The part of the rate that fills the ledger, of which new buckets may have half at once. */
const RESERVE = 1 / 32
/** What data planes get beyond what they used, as their use varies. */
const HEADROOM = 1 / 16
/** Differences below these parts of its own rate change nothing: a new bucket costs tokens. */
const RAISE_STEP = 1 / 32
const CUT_STEP = 1 / 16
/** The same as parts of the budget. */
const SMALLEST_STEP = 1 / 128
/** The part of an equal share that a data plane without requests keeps. */
const IDLE_PART = 1 / 64
/** The part of the budget that newcomers, and broken streams before them, may have of what others need. */
const NEWCOMERS_PART = 1 / 4
/** Reports in shorter time are counted together. */
const SHORTEST_COUNT_MS = 250
/** A renewal is sent when this part of the time to live has passed. */
const RENEW_PART = 1 / 8
/** After this many times to live without a report a bucket id is given up. */
const SILENT_TTLS = 3
/** Fills that make rates exact to a thousandth. All grants of a budget have the same: Envoy does not see a change of the seconds alone. */
const FILL_SECONDS = [1, 10, 60, 600, 3_600, 36_000, 360_000, 3_600_000] as const
const FINE_FILL = 1_000
/** Of Envoy's messages. */
const MAX_TOKENS_PER_FILL = 0xffff_ffff

/**
 * Splits one budget among data planes that decide by themselves. A pure state machine: reports, acknowledgements and time in, messages out.
 *
 * In any interval of length t at most `burst + 1 + n + rate * t` requests are admitted by assignments, for n data planes that hold one (ADR 16). That
 * holds because the rates that may be in force never exceed the budget, and each new bucket is paid by what they leave of it.
 */
export class QuotaBudget {
  readonly #options: BudgetOptions
  readonly #holders = new Set<Holder>()
  readonly #ledger: BurstLedger
  readonly #fillSeconds: number
  readonly #quietUntilMs: number
  #numbers: BudgetNumbers
  /** Tokens that buckets may hold beyond their first. */
  #spare: number
  #atMs: number
  /** Sums over all holders, of what may be in force. */
  #perFillInForce = 0
  #spareInForce = 0

  constructor(numbers: BudgetNumbers, options: BudgetOptions, nowMs: number) {
    this.#options = options
    this.#numbers = numbers
    this.#fillSeconds = fillSecondsFor(numbers.ratePerSecond)
    this.#spare = spareOf(numbers)
    this.#quietUntilMs = options.quietUntilMs ?? Number.NEGATIVE_INFINITY
    // Buckets of an earlier process were paid until then, so the ledger begins empty.
    this.#ledger = new BurstLedger(ledgerOf(numbers), options.quietUntilMs === undefined ? Number.POSITIVE_INFINITY : 0)
    this.#atMs = options.quietUntilMs ?? nowMs
  }

  /** Data planes that hold a part, those whose stream broke included. */
  get size(): number {
    return this.#holders.size
  }

  /** Requests a second that may be admitted by the assignments in force. */
  get assignedPerSecond(): number {
    return this.#perFillInForce / this.#fillSeconds
  }

  /** Whether it may be thrown away: one that is made again begins with the same. */
  get isFresh(): boolean {
    return this.#holders.size === 0 && this.#ledger.isFull
  }

  /** A data plane reports for the first time. What it counted is from before, over an unknown time. */
  join(nowMs: number): Holder {
    const holder = new Holder(nowMs)
    this.#holders.add(holder)
    return holder
  }

  /** A further report: `requests` admitted and denied since the last one. */
  report(holder: Holder, requests: number, nowMs: number): void {
    holder.count(requests, nowMs, SHORTEST_COUNT_MS)
  }

  /** The data plane has received what was sent to `holder`. */
  confirm(holder: Holder, nowMs: number): void {
    const { sent, inForce } = holder
    if (sent === undefined || holder.goneUntilMs !== undefined) return
    this.#passTo(nowMs)
    if (sent.kind === 'abandon') {
      this.#alter(holder, () => this.#clear(holder))
      this.#forget(holder)
      return
    }
    // A renewal that may have arrived after the end began a full bucket.
    const isRenewed = sent.kind === 'renewal' && inForce !== undefined && nowMs < inForce.expiresFromMs
    this.#ledger.settle(sent.paid, !isRenewed)
    this.#alter(holder, () => {
      holder.sent = undefined
      holder.inForce = {
        tokensPerFill: sent.tokensPerFill,
        maxTokens: sent.maxTokens,
        sentAtMs: sent.sentAtMs,
        expiresFromMs: sent.sentAtMs + this.#ttlMs * (1 - PACE),
        expiresByMs: nowMs + this.#longestMs,
      }
    })
  }

  /** The stream of `holder` broke. What was on its way may have arrived. */
  leave(holder: Holder, nowMs: number): void {
    if (holder.goneUntilMs !== undefined || !this.#holders.has(holder)) return
    const mayArrive = holder.sent !== undefined ? nowMs + this.#longestMs : 0
    holder.goneAtMs = nowMs
    holder.goneUntilMs = Math.max(nowMs, holder.inForce?.expiresByMs ?? 0, mayArrive)
  }

  /** The data plane of `holder` is back over another stream: it has the part that it had. */
  comeBack(holder: Holder, nowMs: number): void {
    const { sent, inForce } = holder
    this.#passTo(nowMs)
    // What was on its way may have arrived, or not.
    if (sent !== undefined) this.#ledger.settle(sent.paid, true)
    this.#alter(holder, () => {
      const latest = sent?.kind === 'abandon' ? undefined : sent
      holder.inForce = (inForce ?? latest) && {
        tokensPerFill: holder.tokensPerFill,
        maxTokens: Math.max(inForce?.maxTokens ?? 0, latest?.maxTokens ?? 0),
        sentAtMs: nowMs,
        // A process that was started again has a full bucket with its next assignment, as after an end: that is paid.
        expiresFromMs: nowMs,
        expiresByMs: Math.max(inForce?.expiresByMs ?? 0, latest === undefined ? 0 : (holder.goneUntilMs ?? nowMs)),
      }
      holder.sent = undefined
    })
    holder.goneAtMs = undefined
    holder.goneUntilMs = undefined
    holder.reportedAtMs = nowMs
    holder.isDue = true
  }

  /** New numbers. What was assigned by those before ends with its time to live at the latest. */
  resize(numbers: BudgetNumbers, nowMs: number): void {
    this.#passTo(nowMs)
    this.#numbers = numbers
    this.#spare = spareOf(numbers)
    this.#ledger.resize(ledgerOf(numbers))
  }

  /** Messages that are due. A holder has one message on its way at a time. */
  plan(nowMs: number): QuotaAction[] {
    this.#passTo(nowMs)
    this.#expire(nowMs)
    if (nowMs < this.#quietUntilMs) return []
    const actions: QuotaAction[] = []
    const present = Array.from(this.#holders).filter(({ goneUntilMs }) => goneUntilMs === undefined)
    for (const holder of present) this.#abandonIfSilent(holder, nowMs, actions)
    // Silent ones keep what they have until it ends, and get no more.
    const live = present.filter(({ reportedAtMs }) => nowMs < reportedAtMs + this.#ttlMs)
    const shares = this.#shares(live)
    const missing = this.#raise(live, shares, nowMs, actions)
    this.#cut(live, shares, missing, nowMs, actions)
    for (const holder of live) this.#renew(holder, shares.get(holder) ?? 0, nowMs, actions)
    return actions
  }

  get #ttlMs(): number {
    return this.#options.ttlSeconds * 1_000
  }

  get #longestMs(): number {
    return longestMs(this.#options.ttlSeconds)
  }

  /** Tokens for a fill of all that is assigned, at most; `reserve` is the part kept back. */
  #assignable(reserve: number): number {
    return (this.#numbers.ratePerSecond * this.#fillSeconds * (1 - reserve)) / (1 + PACE)
  }

  /** Rates that no assignment has fill the ledger. Those in force are counted as of the last event, which is not less than since then. */
  #passTo(nowMs: number): void {
    const seconds = Math.max(0, nowMs - this.#atMs) / 1_000
    this.#atMs = Math.max(this.#atMs, nowMs)
    const unused = this.#numbers.ratePerSecond - this.assignedPerSecond * (1 + PACE)
    if (unused > 0) this.#ledger.fill(unused * seconds)
  }

  #expire(nowMs: number): void {
    for (const holder of this.#holders) {
      const { goneUntilMs, inForce } = holder
      if (goneUntilMs !== undefined && nowMs >= goneUntilMs) {
        if (holder.sent !== undefined) this.#ledger.settle(holder.sent.paid, true)
        this.#alter(holder, () => this.#clear(holder))
        this.#forget(holder)
      } else if (inForce !== undefined && nowMs >= inForce.expiresByMs)
        this.#alter(holder, () => {
          holder.inForce = undefined
        })
    }
  }

  #forget(holder: Holder): void {
    this.#holders.delete(holder)
    this.#options.onForgotten?.(holder)
  }

  #clear(holder: Holder): void {
    holder.sent = undefined
    holder.inForce = undefined
  }

  /** Changes the grants of `holder`, and the sums with them. */
  #alter(holder: Holder, change: () => void): void {
    this.#perFillInForce -= holder.tokensPerFill
    this.#spareInForce -= holder.spareTokens
    change()
    this.#perFillInForce += holder.tokensPerFill
    this.#spareInForce += holder.spareTokens
  }

  #abandonIfSilent(holder: Holder, nowMs: number, actions: QuotaAction[]): void {
    if (holder.sent !== undefined) return
    const isSilent = nowMs >= holder.reportedAtMs + SILENT_TTLS * this.#ttlMs
    if (!isSilent && nowMs < holder.usedAtMs + this.#options.idleMs) return
    const { tokensPerFill = 0, maxTokens = 0 } = holder.inForce ?? {}
    holder.sent = { kind: 'abandon', tokensPerFill, maxTokens, sentAtMs: nowMs, paid: 0 }
    actions.push({ holder, assignment: { kind: 'abandon' } })
  }

  /**
   * The fair part of each holder, in tokens for a fill. What broken streams still hold is taken from those that joined after one broke, since one of these is
   * the data plane that it was of: a data plane that comes back again and again has no part of the others. Only where data planes are started anew
   * everywhere, others leave them a little.
   */
  #shares(live: readonly Holder[]): ReadonlyMap<Holder, number> {
    const open = live.filter(({ sent }) => sent?.kind !== 'abandon')
    let firstGoneMs = Number.POSITIVE_INFINITY
    let gone = 0
    for (const { goneAtMs, tokensPerFill } of this.#holders) {
      if (goneAtMs === undefined) continue
      firstGoneMs = Math.min(firstGoneMs, goneAtMs)
      gone += tokensPerFill
    }
    const all = this.#assignable(RESERVE)
    const total = Math.max(0, all - (this.#perFillInForce - gone - open.reduce((sum, { tokensPerFill }) => sum + tokensPerFill, 0)))
    const equal = total / Math.max(1, open.length)
    const free = Math.max(0, all - this.#perFillInForce)
    const wanted = open.map(({ demand }) =>
      demand === undefined ? Math.max(equal / 2, free / 2) : Math.max(equal * IDLE_PART, demand * this.#fillSeconds * (1 + HEADROOM)),
    )
    const shares = fairShares(wanted, total)
    if (gone > 0) {
      const isYoung = open.map(({ joinedAtMs }) => joinedAtMs >= firstGoneMs)
      const part = (young: boolean, most: number): void => {
        const places = shares.flatMap((_, i) => (isYoung[i] === young ? [i] : []))
        const parts = fairShares(
          places.map((i) => shares[i] as number),
          Math.max(0, most),
        )
        for (const [at, i] of places.entries()) shares[i] = parts[at] as number
      }
      const sumOf = (young: boolean): number => shares.reduce((sum, share, i) => sum + (isYoung[i] === young ? share : 0), 0)
      part(true, Math.max(total - gone - sumOf(false), total * NEWCOMERS_PART - gone))
      part(false, total - gone - sumOf(true))
    }
    return new Map(open.map((holder, index) => [holder, shares[index] as number]))
  }

  /** Gives from what is free. Returns what is missing, in tokens for a fill. */
  #raise(
    live: readonly Holder[],
    shares: ReadonlyMap<Holder, number>,
    nowMs: number,
    actions: QuotaAction[],
  ): { all: number; starving: number } {
    const smallest = this.#assignable(RESERVE) * SMALLEST_STEP
    const short = live.flatMap((holder) => {
      if (holder.sent !== undefined) return []
      const has = holder.inForce?.tokensPerFill ?? 0
      const share = shares.get(holder) ?? 0
      const lack = share - has
      if (has > 0 && lack <= Math.max(has * RAISE_STEP, smallest)) return []
      return lack > 0 ? [{ holder, has, share, lack }] : []
    })
    short.sort((a, b) => Number(a.has > 0) - Number(b.has > 0) || b.lack - a.lack)
    const lackInAll = short.reduce((sum, { lack }) => sum + lack, 0)
    const surplus = Math.max(0, this.#assignable(RESERVE) - this.#perFillInForce - lackInAll)
    const missing = { all: Math.max(0, this.#perFillInForce - this.#assignable(RESERVE)), starving: 0 }
    for (const { holder, has, share, lack } of short) {
      // New buckets may have half of the reserve; what nothing asks for is headroom.
      const free = this.#assignable(has === 0 ? RESERVE / 2 : RESERVE) - this.#perFillInForce
      const raised = Math.min(MAX_TOKENS_PER_FILL, Math.floor(has + Math.min(lack + surplus / (2 * short.length), free)))
      const isWorth = raised > has && (has === 0 || raised - has > Math.min(lack / 2, smallest))
      const given = isWorth && this.#change(holder, raised, nowMs, actions) ? raised - has : 0
      missing.all += Math.max(0, lack - given)
      if (has + given < share / 2) missing.starving += share / 2 - has - given
    }
    return missing
  }

  /** Takes from those that have more than their part, where others lack it. */
  #cut(
    live: readonly Holder[],
    shares: ReadonlyMap<Holder, number>,
    missing: { readonly all: number; readonly starving: number },
    nowMs: number,
    actions: QuotaAction[],
  ): void {
    const coming = live.reduce(
      (sum, { sent, inForce }) =>
        sum + Math.max(0, (inForce?.tokensPerFill ?? 0) - (sent?.tokensPerFill ?? 0)) * Number(sent !== undefined),
      0,
    )
    // What is free and could not be paid yet need not be taken from others.
    const free = Math.max(0, this.#assignable(RESERVE) - this.#perFillInForce)
    let needed = missing.all - coming - free
    if (needed <= 0) return
    const smallest = this.#assignable(RESERVE) * SMALLEST_STEP
    const rich = live
      .filter(({ sent, inForce }) => sent === undefined && inForce !== undefined && inForce.tokensPerFill > 0)
      .map((holder) => ({ holder, has: holder.tokensPerFill, excess: holder.tokensPerFill - (shares.get(holder) ?? 0) }))
      .sort((a, b) => b.excess - a.excess)
    for (const { holder, has, excess } of rich) {
      if (needed <= 0 || excess <= Math.max(has * CUT_STEP, smallest)) break
      const target = Math.floor(has - excess)
      if (this.#change(holder, target, nowMs, actions)) needed -= has - target
    }
    // Where all are near their part, a new bucket still must get one.
    const [richest] = rich.filter(({ holder }) => holder.sent === undefined).sort((a, b) => b.has - a.has)
    const starving = Math.min(missing.starving - coming - free, needed)
    if (richest === undefined || starving <= 0) return
    this.#change(richest.holder, Math.ceil(richest.has - Math.min(starving, richest.has / 2)), nowMs, actions)
  }

  /** Extends what is in force, or says again that nothing is. */
  #renew(holder: Holder, share: number, nowMs: number, actions: QuotaAction[]): void {
    if (!holder.isDue || holder.sent !== undefined) return
    const { inForce } = holder
    if (inForce === undefined) {
      this.#send(holder, { kind: 'change', tokensPerFill: 0, maxTokens: 0 }, 0, nowMs, actions)
      return
    }
    const isEnded = nowMs >= inForce.expiresFromMs
    if (!isEnded && nowMs < inForce.sentAtMs + this.#ttlMs * RENEW_PART) return
    if (inForce.maxTokens > 0 && (isEnded || this.#isStinted(inForce))) {
      if (this.#change(holder, isEnded ? Math.min(inForce.tokensPerFill, Math.ceil(share)) : inForce.tokensPerFill, nowMs, actions)) return
      if (isEnded) return
    }
    // What is beyond a budget that became smaller ends.
    if (this.#perFillInForce > this.#assignable(0) && inForce.tokensPerFill > share * (1 + CUT_STEP)) return
    if (inForce.maxTokens <= this.#ledger.level)
      this.#send(holder, { kind: 'renewal', ...numbersOf(inForce) }, inForce.maxTokens, nowMs, actions)
  }

  /** Whether it has a smaller bucket than its rate earns, and now there is enough for it. */
  #isStinted({ tokensPerFill, maxTokens }: Grant): boolean {
    return this.#ledger.isFull && this.#tokensFor(tokensPerFill) >= 2 * maxTokens
  }

  #tokensFor(tokensPerFill: number): number {
    const part = tokensPerFill / Math.max(1, this.#assignable(RESERVE))
    return 1 + Math.floor(this.#spare * Math.min(1, part))
  }

  /** Sends a new bucket where it can be paid; false where it cannot. */
  #change(holder: Holder, tokensPerFill: number, nowMs: number, actions: QuotaAction[]): boolean {
    const { inForce } = holder
    if (tokensPerFill < 1) {
      this.#send(holder, { kind: 'change', tokensPerFill: 0, maxTokens: 0 }, 0, nowMs, actions)
      return true
    }
    const own = Math.max(0, (inForce?.maxTokens ?? 0) - 1)
    const room = Math.max(own, this.#spare - this.#spareInForce + own)
    const full = Math.min(this.#tokensFor(tokensPerFill), 1 + Math.floor(room))
    // What renewals need is left, except by those that have nothing.
    const payable = this.#ledger.level - ((inForce?.tokensPerFill ?? 0) > 0 ? this.#spare + 1 : 0)
    const least = 1 + Math.floor((full - 1) / 4)
    if (payable < least) return false
    const maxTokens = Math.min(full, Math.floor(payable))
    this.#send(holder, { kind: 'change', tokensPerFill, maxTokens }, maxTokens, nowMs, actions)
    return true
  }

  #send(
    holder: Holder,
    { kind, tokensPerFill, maxTokens }: Grant & { readonly kind: 'change' | 'renewal' },
    paid: number,
    nowMs: number,
    actions: QuotaAction[],
  ): void {
    this.#ledger.pay(paid)
    this.#alter(holder, () => {
      holder.sent = { kind, tokensPerFill, maxTokens, sentAtMs: nowMs, paid }
    })
    holder.isDue = false
    const { ttlSeconds } = this.#options
    const bucket = { maxTokens, tokensPerFill, fillSeconds: this.#fillSeconds }
    actions.push({ holder, assignment: maxTokens === 0 ? { kind: 'deny', ttlSeconds } : { kind: 'tokens', bucket, ttlSeconds } })
  }
}

/** How long after its arrival an assignment may be in force, by the clock of this side. */
export function longestMs(ttlSeconds: number): number {
  return ttlSeconds * 1_000 * (1 + PACE) + EXPIRY_SLACK_MS
}

/** Tokens that buckets hold beyond their first: a third, so that the ledger can renew all of them and still pay for a change. */
function spareOf({ burst }: BudgetNumbers): number {
  return Math.max(0, Math.floor((burst - 1) / 3))
}

function ledgerOf(numbers: BudgetNumbers): number {
  return Math.max(1, numbers.burst) - spareOf(numbers) + 1
}

function fillSecondsFor(ratePerSecond: number): number {
  return FILL_SECONDS.find((seconds) => ratePerSecond * seconds >= FINE_FILL) ?? (FILL_SECONDS.at(-1) as number)
}

function numbersOf({ tokensPerFill, maxTokens }: Grant): Grant {
  return { tokensPerFill, maxTokens }
}

/**
 * Splits `total` by max-min fairness: who wants less than an equal share gets it whole, and what they leave is split equally among the others. A
 * claim above the equal share gains nothing, so an absurd one harms no other.
 *
 * @returns one share for each of `wanted`, none above it.
 */
function fairShares(wanted: readonly number[], total: number): number[] {
  const shares = new Array<number>(wanted.length).fill(0)
  const order = Array.from(wanted, (_, index) => index).sort((a, b) => (wanted[a] as number) - (wanted[b] as number))
  let left = total
  for (const [position, index] of order.entries()) {
    const share = Math.max(0, Math.min(wanted[index] as number, left / (order.length - position)))
    shares[index] = share
    left -= share
  }
  return shares
}
