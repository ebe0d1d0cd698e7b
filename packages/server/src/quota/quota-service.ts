import type { Config } from 'sluicegate-config/config.js'
import type { QuotaTimes } from 'sluicegate-config/quotas.js'
import type { Engine } from '../engine/engine.js'
import { inSlices } from '../later-turns.js'
import type { Part, Prepared } from '../part.js'
import type { Assignment } from './assignment.js'
import { Places } from './burst-ledger.js'
import type { Holder } from './holder.js'
import { longestMs } from './quota-budget.js'
import { type BucketId, bucketIdOf, DEFAULT_QUOTA_BOUNDS, type QuotaBounds, QuotaCounts } from './quota-counts.js'
import { type FoundQuota, type QuotaConfig, QuotaRules } from './quota-rules.js'
import type { Bucket, BucketAction, BucketUsage, QuotaOutlet, StreamState } from './quota-stream.js'
import { SharedQuota } from './shared-quota.js'

/** Options of {@link QuotaService}. */
export interface QuotaServiceOptions {
  readonly engine: Engine
  readonly config: QuotaConfig
  readonly times: QuotaTimes
  readonly nowMs: () => number
  /** Whether the rules of Envoy's files deny nothing. */
  readonly isShadow?: boolean
  readonly bounds?: Partial<QuotaBounds>
}

/** How often assignments are planned where reports have come in. */
const TICK_MS = 20
/** In that number of ticks all budgets are planned once, and all streams are looked at. */
const TICKS_OF_ROUND = 25
/** Between two of these numbers of buckets, messages and budgets other work of the service has its turn. */
const BUCKETS_OF_STEP = 32
const MESSAGES_OF_STEP = 4
const BUDGETS_OF_STEP = 16
const LOOKS_OF_STEP = 512
/** What a report of a bucket costs that gets no assignment, beyond one that does: it is looked up each time. */
const REFUSED_COST = 9
/** Assignments to everything or nothing are renewed when this part of the time to live has passed. */
const RENEW_PART = 1 / 8

/** One data plane, as long as its stream is open. */
export interface QuotaStream {
  /** The domain of the first report; undefined before it. */
  readonly domain: string | undefined
  /** The steps of taking in a report of a domain, that of the first one. The stream is ended where it reports too fast. */
  report(domain: string, usages: readonly BucketUsage[]): Iterator<unknown>
  closed(): void
}

/**
 * Splits the budgets of policies among data planes, each of which reports what it uses over one stream and decides by itself. Protocols carry the
 * messages; {@link QuotaBudget} says how much each data plane gets.
 */
export class QuotaService implements Part {
  readonly name = 'quotas'
  readonly counts = new QuotaCounts()
  readonly #options: QuotaServiceOptions
  readonly #bounds: QuotaBounds
  readonly #nowMs: () => number
  readonly #streamPlaces: Places
  readonly #places: Places
  readonly #streams = new Set<StreamState>()
  readonly #byKey = new Map<string, Quota>()
  readonly #quotas = new Set<Quota>()
  readonly #due = new Set<Quota>()
  /** Streams that have ended, and when: their buckets are still to be left. */
  readonly #closing = new Map<StreamState, number>()
  readonly #figures = new Map<string, QuotaFigures>()
  #round: Iterator<Quota> | undefined
  #rules: QuotaRules
  /** Counts configurations. */
  #configured = 0
  /** Budgets that are made before then assign nothing until then: assignments that they do not know may be in force. */
  #quietUntilMs: number
  #timer: NodeJS.Timeout | undefined
  #ticks = 0
  #isTicking = false
  #isLeaving = false

  constructor(options: QuotaServiceOptions) {
    this.#options = options
    this.#bounds = { ...DEFAULT_QUOTA_BOUNDS, ...options.bounds }
    this.#nowMs = options.nowMs
    this.#streamPlaces = new Places(this.#bounds.maxStreams)
    this.#places = new Places(this.#bounds.maxBuckets)
    this.#rules = new QuotaRules(options.engine, options.config, options.isShadow ?? false)
    this.#quietUntilMs = this.#nowMs() + longestMs(options.times.ttlSeconds)
  }

  get streams(): number {
    return this.#streams.size
  }

  /** Messages to data planes that have not arrived yet, as far as is known. */
  get unreadMessages(): number {
    let messages = 0
    for (const { unreadMessages } of this.#streams) messages += unreadMessages
    return messages
  }

  /** Buckets that hold a part of a budget, those of broken streams included until their assignments have ended. */
  figures(): Iterable<Readonly<QuotaFigures>> {
    return this.#figures.values()
  }

  /** Decides by another configuration from now on: buckets are looked up again when they are reported, numbers change at once. */
  use(config: QuotaConfig): void {
    this.#rules = new QuotaRules(this.#options.engine, config, this.#options.isShadow ?? false)
    this.#configured++
    for (const quota of this.#quotas) this.#due.add(quota)
  }

  /** Takes in a data plane; undefined where there is no room for one more, or the service is about to stop. */
  open(outlet: QuotaOutlet): QuotaStream | undefined {
    if (this.#isLeaving) return undefined
    if (!this.#streamPlaces.take(outlet.host)) {
      this.counts.cuts.too_many_streams++
      return undefined
    }
    const nowMs = this.#nowMs()
    const state: StreamState = {
      domain: undefined,
      outlet,
      buckets: new Map(),
      heardAtMs: nowMs,
      unreadSinceMs: undefined,
      unreadMessages: 0,
      credit: this.#bounds.reportBurst,
      creditAtMs: nowMs,
    }
    this.#streams.add(state)
    this.#timer ??= setInterval(() => this.#tickInSlices(), TICK_MS).unref()
    return {
      get domain() {
        return state.domain
      },
      report: (domain, usages) => {
        state.domain ??= domain
        return this.#report(state, domain, usages)
      },
      closed: () => this.#closed(state),
    }
  }

  /** Ends all streams, and takes in no others: what is assigned ends with its time to live, and another process may serve the data planes. */
  leave(): void {
    this.#isLeaving = true
    for (const { outlet } of this.#streams) outlet.end('leaving')
  }

  reload({ quotaRules, domains }: Config): Prepared {
    return { commit: () => this.use({ rules: quotaRules, domains }) }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Sends what is due, all at once. */
  tick(): void {
    for (const steps = this.#tick(); !steps.next().done; );
  }

  /** Called by a timer. */
  #tickInSlices(): void {
    if (this.#isTicking) return
    this.#isTicking = true
    void inSlices(this.#tick()).finally(() => {
      this.#isTicking = false
    })
  }

  *#tick(): Generator<void> {
    if (++this.#ticks % TICKS_OF_ROUND === 0) this.#lookAtStreams(this.#nowMs())
    yield* this.#leaveClosed()
    for (let left = Math.ceil(this.#quotas.size / TICKS_OF_ROUND); left > 0; left--) {
      this.#round ??= this.#quotas.values()
      const { value, done } = this.#round.next()
      if (done === true) this.#round = undefined
      else this.#due.add(value)
    }
    const actions = new Map<StreamState, Sent[]>()
    let planned = 0
    let looks = this.#due.size
    for (const quota of this.#due) {
      // What has become due meanwhile comes in the next tick.
      if (looks-- <= 0) break
      if (looks % LOOKS_OF_STEP === 0) yield
      const nowMs = this.#nowMs()
      if (!quota.isWorthPlanning(nowMs)) continue
      this.#due.delete(quota)
      this.#plan(quota, nowMs, actions)
      if (++planned % BUDGETS_OF_STEP === 0 || actions.size >= MESSAGES_OF_STEP) yield* this.#sendAll(actions)
    }
    yield* this.#sendAll(actions)
    if (this.#streams.size === 0 && this.#quotas.size === 0) this.stop()
  }

  *#sendAll(actions: Map<StreamState, Sent[]>): Generator<void> {
    let messages = 0
    for (const [stream, sent] of actions) {
      this.#send(stream, sent, this.#nowMs())
      if (++messages % MESSAGES_OF_STEP === 0) yield
    }
    actions.clear()
    yield
  }

  *#leaveClosed(): Generator<void> {
    let buckets = 0
    for (const [stream, closedMs] of this.#closing) {
      for (const bucket of stream.buckets.values()) {
        this.#leave(bucket, closedMs)
        if (++buckets % BUCKETS_OF_STEP === 0) yield
      }
      this.#closing.delete(stream)
    }
  }

  *#report(stream: StreamState, domain: string, usages: readonly BucketUsage[]): Generator<void> {
    const nowMs = this.#nowMs()
    const { reportBurst, reportsPerSecond } = this.#bounds
    stream.credit = Math.min(reportBurst, stream.credit + ((nowMs - stream.creditAtMs) * reportsPerSecond) / 1_000) - 1 - usages.length
    stream.creditAtMs = nowMs
    stream.heardAtMs = nowMs
    this.counts.reports++
    if (stream.credit < 0) {
      this.#cut(stream, 'too_fast')
      return
    }
    let actions: Sent[] = []
    for (const [i, usage] of usages.entries()) {
      this.#used(stream, domain, usage, nowMs, actions)
      if ((i + 1) % BUCKETS_OF_STEP !== 0) continue
      if (actions.length > 0) this.#send(stream, actions, nowMs)
      actions = []
      yield
      if (!this.#streams.has(stream)) return
    }
    if (actions.length > 0) this.#send(stream, actions, nowMs)
  }

  #used(stream: StreamState, domain: string, { entries, allowed, denied }: BucketUsage, nowMs: number, actions: Sent[]): void {
    const id = bucketIdOf(entries)
    if (id === undefined) {
      this.counts.refused.invalid_id++
      return
    }
    let bucket = stream.buckets.get(id.text)
    if (bucket !== undefined && bucket.foundIn !== this.#configured) bucket = this.#foundAgain(bucket, domain, nowMs, actions)
    const isNew = bucket === undefined
    bucket ??= this.#join(stream, domain, id, nowMs)
    if (bucket === undefined) {
      stream.credit -= REFUSED_COST
      return
    }
    const { quota, holder } = bucket
    const { reported } = this.counts.of(quota.policy)
    reported.allowed += allowed
    reported.denied += denied
    if (holder !== undefined) {
      // Until an abandoned bucket has arrived as such, its reports are of before.
      if (!isNew && holder.sent?.kind !== 'abandon') quota.budget?.report(holder, allowed + denied, nowMs)
      this.#due.add(quota)
      return
    }
    const { ttlSeconds } = this.#options.times
    if (quota.blanket === undefined || nowMs < bucket.sentAtMs + ttlSeconds * 1_000 * RENEW_PART) return
    bucket.sentAtMs = nowMs
    actions.push({ bucket, assignment: { kind: quota.blanket, ttlSeconds } })
  }

  /** The bucket by the configuration of now: the same one, or undefined where it has none or is of another budget. */
  #foundAgain(bucket: Bucket, domain: string, nowMs: number, actions: Sent[]): Bucket | undefined {
    const { id, quota } = bucket
    const found = this.#rules.find(domain, id.entries)
    bucket.foundIn = this.#configured
    if (found !== undefined && found.key === quota.key && !quota.isRetired) {
      quota.use(found)
      return bucket
    }
    this.#leave(bucket, nowMs)
    if (found?.limit() === undefined) actions.push({ bucket, assignment: { kind: 'abandon' } })
    return undefined
  }

  #join(stream: StreamState, domain: string, id: BucketId, nowMs: number): Bucket | undefined {
    const found = this.#rules.find(domain, id.entries)
    const { host } = stream.outlet
    const quota = this.#quotaOf(found, nowMs, host)
    if (quota === undefined) return undefined
    const place = placeOf(stream, id)
    const back = this.#backFrom(quota, place, nowMs)
    if (stream.buckets.size >= this.#bounds.maxBucketsPerStream || (back === undefined && !this.#hasPlace(quota, host))) {
      this.counts.refused.too_many_buckets++
      return undefined
    }
    const holder = back ?? quota.budget?.join(nowMs)
    if (back !== undefined) {
      quota.budget?.comeBack(back, nowMs)
      this.counts.of(quota.policy).returned.reconnected++
    }
    const bucket: Bucket = { id, stream, quota, holder, foundIn: this.#configured, sentAtMs: Number.NEGATIVE_INFINITY }
    stream.buckets.set(id.text, bucket)
    quota.buckets.add(bucket)
    quota.hasNewBucket = true
    if (holder !== undefined) quota.hold(holder, bucket, place)
    return bucket
  }

  #hasPlace({ budget, places }: Quota, host: string): boolean {
    if (budget !== undefined && !places.take(host)) return false
    if (this.#places.take(host)) return true
    if (budget !== undefined) places.giveBack(host)
    return false
  }

  /** What the data plane had at `place` over a stream that broke. Undefined too where several have its address: which of them is back cannot be told. */
  #backFrom(quota: Quota, place: string, nowMs: number): Holder | undefined {
    let back: Bucket | undefined
    for (const holder of quota.heldAt(place)) {
      const bucket = quota.byHolder.get(holder)
      if (bucket === undefined || (holder.goneUntilMs ?? Number.POSITIVE_INFINITY) <= nowMs) continue
      if (back !== undefined || this.#streams.has(bucket.stream)) return undefined
      back = bucket
    }
    if (back === undefined) return undefined
    // Where it is not left yet.
    const closedMs = this.#closing.get(back.stream)
    if (closedMs !== undefined) this.#leave(back, closedMs)
    return back.holder
  }

  #quotaOf(found: FoundQuota | undefined, nowMs: number, host: string): Quota | undefined {
    const known = found && this.#byKey.get(found.key)
    if (known !== undefined) return known
    const limit = found?.limit()
    if (found === undefined || limit === undefined) {
      this.counts.refused.no_rule++
      return undefined
    }
    if (!this.#places.take(host)) {
      this.counts.refused.too_many_buckets++
      return undefined
    }
    const quota: Quota = new SharedQuota(
      found,
      limit,
      {
        ...this.#options.times,
        ...(nowMs < this.#quietUntilMs && { quietUntilMs: this.#quietUntilMs }),
        onForgotten: (holder) => this.#forgotten(quota, holder),
      },
      nowMs,
      host,
      this.#bounds.maxBucketsPerBudget,
    )
    this.#byKey.set(found.key, quota)
    this.#quotas.add(quota)
    return quota
  }

  #plan(quota: Quota, nowMs: number, actions: Map<StreamState, Sent[]>): void {
    quota.plannedAtMs = nowMs
    quota.hasNewBucket = false
    if (!quota.isRetired && !quota.follow(nowMs)) this.#retire(quota, nowMs)
    for (const { holder, assignment } of quota.budget?.plan(nowMs) ?? []) {
      const bucket = quota.byHolder.get(holder)
      if (bucket === undefined) continue
      const sent = actions.get(bucket.stream) ?? []
      actions.set(bucket.stream, sent)
      sent.push({ bucket, assignment })
    }
    const isOver = quota.isDispensable
    this.#show(quota, isOver)
    if (!isOver || !this.#quotas.delete(quota)) return
    this.#places.giveBack(quota.host)
    if (this.#byKey.get(quota.key) === quota) this.#byKey.delete(quota.key)
  }

  /** Takes over the figures of `quota`: to add up all of them for each reader of the metrics would take long. */
  #show(quota: Quota, isOver: boolean): void {
    const { policy, byHolder, buckets, budget, shown } = quota
    const figures = this.#figures.get(policy) ?? { policy, quotas: 0, buckets: 0, assignedPerSecond: 0 }
    this.#figures.set(policy, figures)
    const now: QuotaFigures = isOver
      ? { policy, quotas: 0, buckets: 0, assignedPerSecond: 0 }
      : {
          policy,
          quotas: 1,
          buckets: budget === undefined ? buckets.size : byHolder.size,
          assignedPerSecond: budget?.assignedPerSecond ?? 0,
        }
    figures.quotas += now.quotas - (shown?.quotas ?? 0)
    figures.buckets += now.buckets - (shown?.buckets ?? 0)
    figures.assignedPerSecond += now.assignedPerSecond - (shown?.assignedPerSecond ?? 0)
    quota.shown = now
    if (figures.quotas === 0) this.#figures.delete(policy)
  }

  /** Its buckets are looked up again when they are reported. What it has assigned ends with its time to live. */
  #retire(quota: Quota, nowMs: number): void {
    quota.isRetired = true
    this.#byKey.delete(quota.key)
    this.#quietUntilMs = nowMs + longestMs(this.#options.times.ttlSeconds)
    for (const bucket of quota.buckets) {
      bucket.foundIn = -1
      if (bucket.holder !== undefined) quota.budget?.leave(bucket.holder, nowMs)
    }
  }

  #send(stream: StreamState, sent: readonly Sent[], nowMs: number): void {
    const actions: BucketAction[] = []
    for (const { bucket, assignment } of sent) {
      actions.push({ entries: bucket.id.entries, assignment })
      this.counts.of(bucket.quota.policy).assignments[assignment.kind]++
    }
    stream.unreadSinceMs ??= nowMs
    stream.unreadMessages++
    stream.outlet.send(actions, () => {
      stream.unreadMessages--
      stream.unreadSinceMs = stream.unreadMessages === 0 ? undefined : this.#nowMs()
      this.#delivered(sent)
    })
  }

  #delivered(sent: readonly Sent[]): void {
    const nowMs = this.#nowMs()
    for (const { bucket, assignment } of sent) {
      const { quota, holder, stream, id } = bucket
      if (holder === undefined) continue
      quota.budget?.confirm(holder, nowMs)
      this.#due.add(quota)
      if (assignment.kind === 'abandon' && stream.buckets.get(id.text) === bucket) {
        stream.buckets.delete(id.text)
        quota.buckets.delete(bucket)
      }
    }
  }

  #closed(stream: StreamState): void {
    if (!this.#streams.delete(stream)) return
    this.#streamPlaces.giveBack(stream.outlet.host)
    if (stream.buckets.size > 0) this.#closing.set(stream, this.#nowMs())
  }

  /** The data plane of `bucket` has gone, or has it from another budget. */
  #leave(bucket: Bucket, nowMs: number): void {
    const { quota, holder, stream, id } = bucket
    stream.buckets.delete(id.text)
    quota.buckets.delete(bucket)
    if (holder === undefined) this.#places.giveBack(stream.outlet.host)
    else quota.budget?.leave(holder, nowMs)
    this.#due.add(quota)
  }

  /** Nothing of it is in force any more: its part is free. */
  #forgotten(quota: Quota, holder: Holder): void {
    const bucket = quota.byHolder.get(holder)
    if (bucket === undefined) return
    quota.letGo(holder, placeOf(bucket.stream, bucket.id))
    quota.places.giveBack(bucket.stream.outlet.host)
    this.#places.giveBack(bucket.stream.outlet.host)
    this.counts.of(quota.policy).returned[holder.goneUntilMs === undefined ? 'abandoned' : 'broken']++
  }

  #lookAtStreams(nowMs: number): void {
    const { firstReportMs, idleStreamMs, unreadMs } = this.#bounds
    for (const stream of this.#streams) {
      if (nowMs >= stream.heardAtMs + (stream.domain === undefined ? firstReportMs : idleStreamMs)) this.#cut(stream, 'idle')
      else if (stream.unreadSinceMs !== undefined && nowMs >= stream.unreadSinceMs + unreadMs) this.#cut(stream, 'unread')
    }
  }

  #cut(stream: StreamState, reason: 'idle' | 'unread' | 'too_fast'): void {
    this.counts.cuts[reason]++
    stream.outlet.end(reason)
    this.#closed(stream)
  }
}

function placeOf({ outlet: { plane } }: StreamState, { text }: BucketId): string {
  return `${plane}\0${text}`
}

/** What the budgets of one policy have given out, as of when each was planned last: half a second ago at most. */
interface QuotaFigures {
  readonly policy: string
  quotas: number
  /** Buckets that hold a part, those of broken streams included until their assignments have ended. */
  buckets: number
  assignedPerSecond: number
}

/** An assignment on its way. */
interface Sent {
  readonly bucket: Bucket
  readonly assignment: Assignment
}

/** What buckets share. */
type Quota = SharedQuota<Bucket>
