import { createHash } from 'node:crypto'
import type { EnvoyDomain } from 'sluicegate-config/envoy/envoy-domain.js'
import { type RuleLimit, UNITS } from 'sluicegate-config/envoy/rule.js'
import {
  type AskedPriority,
  type Awaitable,
  answersOf,
  type Decision,
  type Engine,
  type Policy,
  type ServedPolicy,
  type TakePart,
  whenDone,
} from '../engine/engine.js'
import { type Entry, type FoundLimit, findLimit } from './find-rule.js'
import { HitCounts, type HitOutcome } from './hit-counts.js'
import {
  type CurrentLimit,
  type Descriptor,
  type DescriptorStatus,
  type LimitRequest,
  LimitRequestError,
  type LimitResponse,
} from './limit-request.js'
import { DEFAULT_LIMIT_SETTINGS, type LimitHeaderNames, type LimitSettings } from './limit-settings.js'
import { type FoundOverride, Overrides } from './overrides.js'

/** A request of Envoy has a handful of both. */
const MAX_DESCRIPTORS = 128
const MAX_ENTRIES = 64
/** Above every limit, and small enough for exact sums. */
const MOST_TOKENS = 2 ** 40

/** One descriptor with the limit that applies to it. */
interface Check {
  readonly limit: RuleLimit
  readonly key: string
  readonly metric: string
  /** Whether requests give the name: with values in it, or as that of a limit that they bring along. */
  readonly isNamedByRequest: boolean
  /** Undefined for a limit of 0. */
  readonly policy: ServedPolicy | undefined
  readonly hits: number
  readonly tokens: number
  readonly isRefund: boolean
  readonly priority: AskedPriority | undefined
}

/** A part of a reservation. */
interface LimitPart extends TakePart {
  readonly costOfHit: number
}

/** The answer to {@link RateLimits.reserve}. */
export interface LimitReservation {
  readonly over: boolean
  /** Undefined where nothing is held: the request is over a limit, or has none. */
  readonly id: string | undefined
}

/** Decides requests of Envoy by the rules of its configuration files, for every protocol that carries them. */
export class RateLimits {
  readonly hits = new HitCounts()
  readonly #engine: Engine
  readonly #settings: LimitSettings
  readonly #overrides: Overrides
  readonly #nowMs: () => number
  #domains: ReadonlyMap<string, EnvoyDomain> = new Map()

  /** @param nowMs the time by which windows end, for keys that nothing was taken from. */
  constructor(
    engine: Engine,
    domains: readonly EnvoyDomain[],
    settings: LimitSettings = DEFAULT_LIMIT_SETTINGS,
    nowMs: () => number = Date.now,
  ) {
    this.#engine = engine
    this.#settings = settings
    this.#overrides = new Overrides(engine)
    this.#nowMs = nowMs
    this.use(domains)
  }

  /** Decides by other rules from now on. Their policies are in the engine already. */
  use(domains: readonly EnvoyDomain[]): void {
    this.#domains = new Map(domains.map((each) => [each.domain, each]))
  }

  /**
   * Charges the descriptors of `request`, all of them or none, and answers for each. Descriptors that only look are never charged, those of
   * rules in shadow mode have no part in the verdict, and those of rules with `charge_denied` are charged in any case.
   *
   * @throws {LimitRequestError} for a request without domain or descriptors, or with too many.
   * @throws {StoreError} when no decision could be made.
   */
  decide(request: LimitRequest, priority?: AskedPriority): Awaitable<LimitResponse> {
    const checks = this.#checks(request, priority)
    const outright = answersOf(checks, (check) => (typeof check === 'object' && chargedOutright(check) ? chargeOutright(check) : undefined))
    return whenDone(outright, (charged) => this.#decideRest(request, checks, charged)) as Awaitable<LimitResponse>
  }

  /** Charges all limits of `request` whether they have tokens left or not, for work that is done already. */
  report(request: LimitRequest): Awaitable<LimitResponse> {
    const checks = this.#checks(request)
    const charged = answersOf(checks, (check) => (typeof check === 'object' ? chargeOutright(check, true) : undefined))
    return whenDone(charged, (decisions) => this.#response(request, checks, decisions, false)) as Awaitable<LimitResponse>
  }

  /**
   * Takes the hits of `request`, all of them or none, before their number is certain; {@link RateLimits.settle} corrects it. A reservation that is not
   * settled in `ttlMs` is free again where the keys are in memory, and stays charged as it is at a store.
   *
   * @throws {LimitRequestError} as {@link RateLimits.decide}.
   * @throws {TooManyHeldError} when too many reservations are open.
   */
  reserve(request: LimitRequest, ttlMs: number, priority?: AskedPriority): Awaitable<LimitReservation> {
    const checks = this.#checks(request, priority)
    const places: number[] = []
    const parts: LimitPart[] = []
    for (const [i, check] of checks.entries()) {
      if (typeof check !== 'object' || check.policy === undefined) continue
      places.push(i)
      parts.push({ ...partOf(check, check.policy), costOfHit: check.limit.cost })
    }
    const isOver = (taken: readonly Decision[]): boolean => {
      const decisions: (Decision | undefined)[] = checks.map(() => undefined)
      for (const [i, decision] of taken.entries()) decisions[places[i] as number] = decision
      return this.#isOver(checks, decisions)
    }
    // Nothing to hold: no limit applies, or one of 0.
    if (parts.length === 0) return { over: isOver([]) && !this.#settings.shadowMode, id: undefined }
    const reserved = this.#engine.reservations.reserve(parts, ttlMs, { passes: (taken) => !isOver(taken), heldMs: ttlMs })
    return whenDone(reserved, ({ id }) => ({ over: id === undefined && !this.#settings.shadowMode, id })) as Awaitable<LimitReservation>
  }

  /** Corrects a reservation to the hits that there were. False when it has ended, or there was none. */
  settle(id: string, hits: number): Awaitable<boolean> {
    const settled = this.#engine.reservations.settle(id, (part) => Math.min(hits * (part as LimitPart).costOfHit, MOST_TOKENS))
    return whenDone(settled, (states) => states !== undefined) as Awaitable<boolean>
  }

  #decideRest(request: LimitRequest, checks: readonly Checked[], charged: readonly (Decision | undefined)[]): Awaitable<LimitResponse> {
    const places: number[] = []
    const parts: TakePart[] = []
    let isPlain = true
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Checked
      if (typeof check !== 'object') continue
      const isPart = charged[i] === undefined && check.policy !== undefined
      if (isPart) {
        places.push(i)
        parts.push(partOf(check, check.policy as ServedPolicy))
      }
      // The default verdict of the engine, that all parts pass, holds for these alone.
      if (!isPart || check.limit.quotaMode) isPlain = false
    }
    const decisions = charged.slice()
    const at = (taken: readonly Decision[]): readonly (Decision | undefined)[] => {
      for (let i = 0; i < taken.length; i++) decisions[places[i] as number] = taken[i]
      return decisions
    }
    if (parts.length === 0) return this.#response(request, checks, decisions, true)
    const options =
      isPlain && !this.#settings.quotaMode ? undefined : { passes: (taken: readonly Decision[]) => !this.#isOver(checks, at(taken)) }
    return whenDone(this.#engine.takeAll(parts, options), (taken) =>
      this.#response(request, checks, at(taken), true),
    ) as Awaitable<LimitResponse>
  }

  /** Over when a limit is, but limits in quota mode only when all of them are. */
  #isOver(checks: readonly Checked[], decisions: readonly (Decision | undefined)[]): boolean {
    let quotas = 0
    let quotasOver = 0
    for (let i = 0; i < checks.length; i++) {
      const check = checks[i] as Checked
      const isQuota = this.#settings.quotaMode || (typeof check === 'object' && check.limit.quotaMode)
      const isOver = typeof check === 'object' && isCheckOver(check, decisions[i])
      if (isOver && !isQuota) return true
      // In quota mode of the service a descriptor without a limit is one that has not failed, except where it is unlimited.
      if (isQuota && check !== 'unlimited') quotas++
      if (isOver) quotasOver++
    }
    return quotas > 0 && quotas === quotasOver
  }

  #response(
    request: LimitRequest,
    checks: readonly Checked[],
    decisions: readonly (Decision | undefined)[],
    isVerdict: boolean,
  ): LimitResponse {
    const nowMs = this.#nowMs()
    const over = isVerdict && this.#isOver(checks, decisions)
    const statuses = checks.map((check, i): DescriptorStatus => {
      if (check === 'unlimited') return UNLIMITED
      if (check === 'none') return NO_LIMIT
      const isOver = isVerdict && isCheckOver(check, decisions[i])
      this.#count(check, decisions[i], isOver, over)
      return descriptorStatus(check.limit, check.policy?.policyOf(check.key), decisions[i], isOver, nowMs, {
        isTiered: check.policy?.config.tiers !== undefined,
        floor: check.priority?.floor ?? 0,
      })
    })
    const { headers, dynamicMetadata: isWanted, shadowMode, quotaMode } = this.#settings
    if (isVerdict) this.#engine.observer?.verdict(over && !shadowMode)
    const soft = headers === undefined && !isWanted ? [] : [...new Set(decisions.flatMap((decision) => decision?.soft ?? []))]
    const isQuota = (i: number): boolean => quotaMode || (typeof checks[i] === 'object' && (checks[i] as Check).limit.quotaMode)
    return {
      over: over && !shadowMode,
      statuses,
      headers: headers === undefined ? [] : [...limitHeaders(headers, statuses, isQuota), ...softHeaders(soft)],
      metadata: isWanted
        ? dynamicMetadata(
            request,
            soft,
            checks.map((check, i) => (typeof check === 'object' && statuses[i]?.over === false ? check.limit.metadata : undefined)),
          )
        : undefined,
    }
  }

  #count(check: Check, decision: Decision | undefined, isOver: boolean, isDenied: boolean): void {
    const { metric, hits, isNamedByRequest } = check
    if (hits === 0) return
    const outcome = this.#outcomeOf(check, decision, isOver, isDenied)
    if (outcome !== undefined) this.hits.count(metric, outcome, hits, isNamedByRequest)
  }

  #outcomeOf(
    { isRefund, policy, limit }: Check,
    decision: Decision | undefined,
    isOver: boolean,
    isDenied: boolean,
  ): HitOutcome | undefined {
    if (isRefund) return 'refunded'
    if (decision?.wouldDeny || (policy === undefined && limit.shadowMode)) return 'shadowed'
    if (isOver) return isDenied || !(limit.quotaMode || this.#settings.quotaMode) ? 'denied' : 'over_quota'
    // What another descriptor denied was not charged.
    return isDenied && !limit.chargeDenied ? undefined : 'allowed'
  }

  #checks({ domain, descriptors, hitsAddend }: LimitRequest, priority?: AskedPriority): Checked[] {
    if (domain === '') throw new LimitRequestError('unset', 'rate limit domain must not be empty')
    if (descriptors.length === 0) throw new LimitRequestError('unset', 'rate limit descriptor list must not be empty')
    if (descriptors.length > MAX_DESCRIPTORS) throw new LimitRequestError('invalid', `a request has at most ${MAX_DESCRIPTORS} descriptors`)
    const rules = this.#domains.get(domain)
    if (rules === undefined) this.hits.unknownDomains++
    let replaced: Set<string> | undefined
    const checks = descriptors.map((descriptor): Checked => {
      if (rules === undefined) return 'none'
      const check = this.#check(rules, descriptor, hitsAddend, priority)
      if (check === undefined) return 'none'
      if (check.limit.replaces.length > 0) replaced = new Set([...(replaced ?? []), ...check.limit.replaces])
      return check.limit.unlimited ? 'unlimited' : check
    })
    if (replaced === undefined) return checks
    return checks.map((check) => (typeof check === 'object' && check.limit.name !== '' && replaced?.has(check.limit.name) ? 'none' : check))
  }

  #check(from: EnvoyDomain, descriptor: Descriptor, hitsOfAll: number, asked: AskedPriority | undefined): Check | undefined {
    const { domain, rules, priorityKey } = from
    const { limit: override, isNegativeHits: isRefund } = descriptor
    const { entries, priority } = withoutPriority(descriptor.entries, priorityKey, asked)
    if (descriptor.entries.length > MAX_ENTRIES) throw new LimitRequestError('invalid', `a descriptor has at most ${MAX_ENTRIES} entries`)
    const found: (FoundLimit & Partial<FoundOverride>) | undefined =
      override === undefined ? findLimit(domain, rules, entries, digestOf) : this.#overrides.limit(domain, entries, override, digestOf)
    if (found === undefined) return undefined
    const { limit, key, metric } = found
    const hits = descriptor.hitsAddend ?? Math.max(1, hitsOfAll)
    const policy = limit.policy === undefined ? undefined : this.#engine.policy(limit.policy)
    // A limit that has just been taken out of the configuration.
    if (policy === undefined && limit.policy !== undefined) return undefined
    const isNamedByRequest = override !== undefined || metric !== limit.path
    return {
      limit,
      key,
      metric,
      isNamedByRequest,
      policy,
      hits,
      tokens: Math.min(hits * limit.cost, MOST_TOKENS),
      isRefund,
      priority: found.priority ?? priority,
    }
  }
}

/** A descriptor with a limit, without one, or with one that is unlimited. */
type Checked = Check | 'none' | 'unlimited'

function partOf({ key, hits, tokens, limit, priority }: Check, policy: ServedPolicy): TakePart {
  const isLook = hits === 0
  return {
    policy,
    key,
    cost: isLook ? limit.cost : tokens,
    ...(priority && { priority }),
    ...(isLook && { peekOnly: true }),
    ...(limit.shadowMode && { shadow: true }),
  }
}

/** Whether a check is charged by itself, whatever the others decide. */
function chargedOutright({ limit, policy, isRefund }: Check): boolean {
  return policy !== undefined && (isRefund || limit.chargeDenied)
}

/** Gives back what a refund does, else takes the tokens, also those that are not there. */
function chargeOutright({ policy, key, tokens, isRefund, limit, priority }: Check, isReport = false): Awaitable<Decision> | undefined {
  if (policy === undefined) return undefined
  if (tokens === 0) return policy.peek(key, limit.cost, priority)
  if (isRefund) return policy.refund(key, tokens)
  if (isReport) return policy.penalize(key, tokens)
  return whenDone(policy.take(key, tokens, priority), (taken) =>
    taken.allowed
      ? shadowedIn(limit, taken)
      : whenDone(policy.penalize(key, tokens), (after) => shadowedIn(limit, { ...after, allowed: false })),
  ) as Awaitable<Decision>
}

function shadowedIn({ shadowMode }: RuleLimit, decision: Decision): Decision {
  return shadowMode && !decision.allowed ? { ...decision, allowed: true, wouldDeny: true } : decision
}

/** Whether a descriptor is over its limit. */
function isCheckOver({ policy, limit, isRefund, hits }: Check, decision: Decision | undefined): boolean {
  if (isRefund) return false
  if (policy === undefined) return !limit.shadowMode
  if (decision === undefined) return false
  // As in Envoy's ratelimit service: a look passes until more was counted than the limit allows, and here all hits are counted.
  if (hits === 0 && limit.chargeDenied) return (decision.spent ?? 0) > decision.limit && !limit.shadowMode
  return !decision.allowed
}

/** The entries that lead to a rule. That of the domain's `priority_key` names the class of the request instead. */
function withoutPriority(
  entries: readonly Entry[],
  key: string | undefined,
  asked: AskedPriority | undefined,
): { readonly entries: readonly Entry[]; readonly priority: AskedPriority | undefined } {
  if (key === undefined) return { entries, priority: asked }
  const named = entries.find((entry) => entry.key === key)
  if (named === undefined) return { entries, priority: asked }
  return { entries: entries.filter((entry) => entry.key !== key), priority: { name: named.value, cap: () => asked?.cap() } }
}

function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}

type Metadata = Readonly<Record<string, unknown>>

/** The dynamic metadata of a response: the request, the limits that are at a soft limit, and the metadata of those that it has passed, merged. */
function dynamicMetadata(
  { domain, descriptors, hitsAddend }: LimitRequest,
  soft: readonly string[],
  passed: readonly (Metadata | undefined)[],
): Metadata {
  const merged: Record<string, unknown> = {}
  for (const metadata of passed) if (metadata !== undefined) merge(merged, metadata)
  return {
    domain,
    descriptors: descriptors.map(descriptorMetadata),
    ...(hitsAddend !== 0 && { hitsAddend }),
    ...(soft.length > 0 && { soft }),
    ...(Object.keys(merged).length > 0 && { metadata: merged }),
  }
}

function descriptorMetadata({ entries, limit, hitsAddend }: Descriptor): Metadata {
  return {
    entries: entries.map(({ key, value }) => `${key}=${value}`),
    ...(limit && { limit: `requests_per_unit:${limit.requestsPerUnit} unit:${unitName(limit.unit)}` }),
    ...(hitsAddend !== undefined && { hitsAddend }),
  }
}

function unitName(number: number): string {
  const [name = 'UNKNOWN'] = Object.entries(UNITS).find(([, unit]) => unit.number === number) ?? []
  return name.toUpperCase()
}

/** The first value of a name stays; mappings are merged. */
function merge(target: Record<string, unknown>, source: Metadata): void {
  for (const [name, value] of Object.entries(source)) {
    const present = Object.hasOwn(target, name) ? target[name] : undefined
    if (present === undefined) define(target, name, isMapping(value) ? structuredClone(value) : value)
    else if (isMapping(present) && isMapping(value)) merge(present, value)
  }
}

/** Names come from files, and one of them may be `__proto__`. */
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, writable: true, configurable: true })
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const MAX_UINT32 = 0xffff_ffff

const NO_LIMIT: DescriptorStatus = { over: false, limit: undefined, remaining: 0, resetS: 0 }
const UNLIMITED: DescriptorStatus = { over: false, limit: undefined, remaining: MAX_UINT32, resetS: 0 }

/**
 * What a response says of a descriptor with a limit. Without `decision` the limit is 0.
 *
 * @param floor tokens that are left in any case, which the limit does not have.
 */
function descriptorStatus(
  limit: RuleLimit,
  policy: Policy | undefined,
  decision: Decision | undefined,
  over: boolean,
  nowMs: number,
  { isTiered, floor }: { readonly isTiered: boolean; readonly floor: number },
): DescriptorStatus {
  const current = currentLimit(limit, isTiered ? policy : undefined)
  const windowEndMs = windowLeftMs(limit, policy, nowMs)
  if (decision === undefined) return { over, limit: current, remaining: 0, resetS: Math.ceil(windowEndMs / 1_000) }
  const { allowed, remaining, retryAfterMs, resetAfterMs } = decision
  const waitMs = allowed || !Number.isFinite(retryAfterMs) ? resetAfterMs : retryAfterMs
  return {
    over,
    limit: current,
    remaining: Math.min(Math.floor(Math.max(0, remaining - floor) / limit.cost), MAX_UINT32),
    resetS: Math.ceil((waitMs > 0 ? waitMs : windowEndMs) / 1_000),
  }
}

/** The limit of the rule, or of the key's tier. */
function currentLimit({ requestsPerUnit, unit, name }: RuleLimit, tier: Policy | undefined): CurrentLimit {
  if (tier === undefined) return { requestsPerUnit, unit: unit === undefined ? 0 : UNITS[unit].number, name }
  const number = Object.values(UNITS).find(({ windowMs }) => windowMs === tier.windowMs)?.number
  return { requestsPerUnit: tier.limit, unit: number ?? 0, name }
}

/** The time to the end of an aligned window, also for a key that nothing was taken from; 0 for buckets and windows of the calendar. */
function windowLeftMs({ unit }: RuleLimit, policy: Policy | undefined, nowMs: number): number {
  if (policy !== undefined && (policy.algorithm !== 'fixed-window' || policy.calendar !== undefined)) return 0
  const windowMs = policy?.windowMs ?? (unit === undefined ? 1_000 : UNITS[unit].windowMs)
  return windowMs - (nowMs % windowMs)
}

/** Headers of the descriptor that is nearest to its limit; of those that are over it the last one, and quotas after all others. */
function limitHeaders(
  names: LimitHeaderNames,
  statuses: readonly DescriptorStatus[],
  isQuota: (place: number) => boolean,
): (readonly [string, string])[] {
  let nearest: DescriptorStatus | undefined
  let remaining = Number.POSITIVE_INFINITY
  for (const [i, status] of statuses.entries()) {
    if (status.limit === undefined) continue
    const isDenying = status.over && !isQuota(i)
    if (!isDenying && status.remaining >= remaining) continue
    nearest = status
    remaining = isDenying ? 0 : status.remaining
  }
  if (nearest?.limit === undefined) return []
  return [
    [names.limit, String(nearest.limit.requestsPerUnit)],
    [names.remaining, String(nearest.remaining)],
    [names.reset, String(nearest.resetS)],
  ]
}

/** As over HTTP. Names are printable ASCII, of which JSON and RFC 9651 have the same strings. */
function softHeaders(policies: readonly string[]): (readonly [string, string])[] {
  return policies.length === 0 ? [] : [['RateLimit-Soft', policies.map((name) => JSON.stringify(name)).join(', ')]]
}
