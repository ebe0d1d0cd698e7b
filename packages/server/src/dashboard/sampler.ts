import type { KeyDisplay } from 'sluicegate-config/config.js'
import { describePolicy } from 'sluicegate-config/policy-text.js'
import type { Candidate } from '../candidate/candidate.js'
import type { KeyCount } from '../candidate/frequent-keys.js'
import type { Counts, ServedPolicy } from '../engine/engine.js'
import type { Outcome } from '../engine/outcome.js'
import { LATENCY_BOUNDS_S } from '../engine/outcome.js'
import { keyDisplay } from '../key-display.js'
import { inSlices } from '../later-turns.js'
import type { ReloadState } from '../reload.js'
import { eventData } from './event-data.js'
import type {
  CandidateSample,
  Flow,
  History,
  PartSample,
  Percentiles,
  PolicySample,
  RankedKey,
  RegionSample,
  Sample,
  ServerSample,
} from './sample.js'

/** Past samples that a newly opened page receives: two minutes. */
export const HISTORY_LENGTH = 120
const RANKED_KEYS = 10
/** Between two of these numbers of policies others have their turn. */
const POLICIES_OF_STEP = 8
/** The name of calls with their own rate. */
const THROTTLE = 'CL.THROTTLE'
/** Longer lists of faults are in the log. */
const MAX_FAULT_CHARACTERS = 4_000
const RANKED_DIFFERENCES = 5
/** Policies of the candidate that a sample shows, those with the most differences. */
const SHOWN_DIFFS = 20
/** The library's default; policies with records of other sizes may have less. */
const DEFAULT_ROOM = 1_600_000

type Flows = Pick<PolicySample, 'allowed' | 'denied' | 'impossible'>
type Rates = { readonly allowed: number; readonly denied: number }

/** Figures of what decides. */
interface Deciding extends Pick<ServedPolicy, 'counts' | 'hotKeys'> {
  stats(): { readonly keys: number; readonly memoryBytes: number }
}

/** What decides: a policy, or calls with their own rate, which have none. */
type Sampled = Deciding & { readonly name: string } & Partial<
    Pick<ServedPolicy, 'policy' | 'holds' | 'denialsByPart' | 'config' | 'isShared'>
  >

/** A policy as the page samples it. */
export type SampledPolicy = Sampled & Pick<ServedPolicy, 'servers' | 'region'>

/** An engine, or the figures of several together. */
export interface SampledEngine {
  readonly policies: Iterable<SampledPolicy>
  readonly callRates: Deciding
  readonly latency: { readonly buckets: Float64Array }
  policy(name: string): unknown
}

/** What a page shows beside the engine. */
export interface Shown {
  readonly reloads?: (() => ReloadState | undefined) | undefined
  readonly candidate?: Candidate | undefined
  /** For the admin listener: its page may change keys, and sees faults with the names of files. */
  readonly isAdmin?: boolean
}

/** Derives rates since the last sample from the engine's counters. */
export class Sampler {
  readonly #engine: SampledEngine
  readonly #keys: 'masked' | 'shown'
  readonly #display: (key: string) => string
  /** Rates only: names and keys of two minutes would be a hundred times as much. */
  readonly #past: { readonly atS: number; readonly rates: ReadonlyMap<string, Rates>; readonly latency: Percentiles | undefined }[] = []
  readonly #shown: Shown
  #historyText: Promise<string> | undefined
  #lastMs = performance.now()
  #last: ReadonlyMap<string, Flows> = new Map()
  #lastRenewed: ReadonlyMap<string, Flow> = new Map()
  #lastLatency: Float64Array

  constructor(engine: SampledEngine, keys: KeyDisplay, shown: Shown = {}) {
    this.#shown = shown
    this.#lastLatency = engine.latency.buckets.slice()
    this.#engine = engine
    this.#keys = keys === 'shown' ? 'shown' : 'masked'
    this.#display = keyDisplay(keys)
  }

  /** The changes since the last call of `sample` or `tick`. */
  sample(): Sample {
    return resultOf(this.sampling())
  }

  /** The steps of {@link Sampler.sample}. */
  *sampling(): Generator<void, Sample> {
    this.tick()
    const flowsOf = this.#last
    const policies: PolicySample[] = []
    for (const served of this.#sampled()) {
      const now = flowsOf.get(served.name)
      // One that a reload has just added comes with the next sample.
      if (now !== undefined) policies.push(this.#policy(served, now))
      if (policies.length % POLICIES_OF_STEP === 0) yield
    }
    const { isAdmin: canChange = false, reloads } = this.#shown
    const { fault, lastSuccessMs = 0 } = reloads?.() ?? {}
    const latency = this.#past.at(-1)?.latency
    const servers = this.#servers()
    const region = this.#region()
    const candidate = this.#candidate()
    return {
      atS: Date.now() / 1000,
      keys: this.#keys,
      canChange,
      policies,
      ...(fault !== undefined && { staleSinceS: lastSuccessMs / 1000, ...(canChange && { faults: fault.slice(0, MAX_FAULT_CHARACTERS) }) }),
      ...(latency && { latency }),
      ...(servers.length > 0 && { servers }),
      ...(region && { region }),
      ...(candidate && { candidate }),
    }
  }

  /** Records the rates for {@link Sampler.history}: the only work while no page is open. */
  tick(): void {
    this.#historyText = undefined
    const nowMs = performance.now()
    // Two calls within a millisecond would yield a meaningless rate.
    const seconds = Math.max(1, nowMs - this.#lastMs) / 1000
    const before = this.#last
    this.#last = new Map(this.#sampled().map(({ name, counts }) => [name, flows(counts, before.get(name), seconds)]))
    this.#lastRenewed = this.#renewed(seconds)
    this.#lastMs = nowMs
    const rates = new Map(
      Array.from(this.#last, ([name, { allowed, denied }]) => [name, { allowed: allowed.perSecond, denied: denied.perSecond }]),
    )
    const buckets = this.#engine.latency.buckets.slice()
    const latency = percentilesBetween(this.#lastLatency, buckets)
    this.#lastLatency = buckets
    this.#past.push({ atS: Date.now() / 1000, rates, latency })
    if (this.#past.length > HISTORY_LENGTH) this.#past.shift()
  }

  /** The past samples' rates. */
  history(): History {
    return resultOf(this.#recalling())
  }

  /** {@link Sampler.history} as JSON, made once for all pages that are opened before the next sample. */
  historyText(): Promise<string> {
    this.#historyText ??= inSlices(eventData(this.#recalling()))
    return this.#historyText
  }

  *#recalling(): Generator<void, History> {
    const past = [...this.#past]
    const column = (name: string, flow: keyof Rates): number[] => past.map(({ rates }) => rates.get(name)?.[flow] ?? 0)
    const policies: { name: string; allowed: number[]; denied: number[] }[] = []
    for (const { name } of this.#sampled()) {
      policies.push({ name, allowed: column(name, 'allowed'), denied: column(name, 'denied') })
      if (policies.length % POLICIES_OF_STEP === 0) yield
    }
    return { atS: past.map(({ atS }) => atS), latency: past.map(({ latency }) => latency ?? null), policies }
  }

  /** The policies, and calls with their own rate once there are any. */
  #sampled(): Sampled[] {
    const policies: Sampled[] = [...this.#engine.policies]
    const { callRates } = this.#engine
    const { allowed, denied, impossible } = callRates.counts
    if (allowed + denied + impossible > 0 && this.#engine.policy(THROTTLE) === undefined)
      policies.push({ name: THROTTLE, counts: callRates.counts, stats: () => callRates.stats(), hotKeys: (n) => callRates.hotKeys(n) })
    return policies
  }

  #policy(served: Sampled, { allowed, denied, impossible }: Flows): PolicySample {
    const { demand, denials } = served.hotKeys(RANKED_KEYS)
    const { keys: keysTracked, memoryBytes } = served.stats()
    const room = roomOf(served)
    return {
      name: served.name,
      description: served.policy === undefined ? 'the rate comes with each call' : describePolicy(served.policy),
      allowed,
      denied,
      impossible,
      keysTracked,
      memoryBytes,
      ...(room !== undefined && { room }),
      ...(hasHeld(served) && { holds: { ...served.holds } }),
      parts: partsOf(served),
      demand: this.#ranked(demand),
      denials: this.#ranked(denials),
    }
  }

  #servers(): ServerSample[] {
    const calls = new Map<string, number>()
    for (const served of this.#engine.policies) {
      for (const { server = '', calls: more } of served.servers()) calls.set(server, (calls.get(server) ?? 0) + more)
    }
    const servers = Array.from(calls, ([name, times]) => ({ name, calls: times }))
    return servers.sort((a, b) => b.calls - a.calls)
  }

  #renewed(seconds: number): ReadonlyMap<string, Flow> {
    const before = this.#lastRenewed
    const renewed = new Map<string, Flow>()
    for (const served of this.#engine.policies) {
      const total = served.region()?.renewedTokens
      if (total === undefined) continue
      renewed.set(served.name, { total, perSecond: Math.max(0, total - (before.get(served.name)?.total ?? 0)) / seconds })
    }
    return renewed
  }

  #region(): RegionSample | undefined {
    let name: string | undefined
    const policies = Array.from(this.#engine.policies).flatMap((served) => {
      const region = served.region()
      if (region === undefined) return []
      const { mode, why, isHomeOut, accountedTokens: charged, regions, share } = region
      name = region.region
      const renewedPerSecond = this.#lastRenewed.get(served.name)?.perSecond ?? 0
      return [{ name: served.name, mode, ...(why !== undefined && { why }), isHomeOut, renewedPerSecond, charged, regions, share }]
    })
    return name === undefined ? undefined : { name, isHomeOut: policies.some(({ isHomeOut }) => isHomeOut), policies }
  }

  #candidate(): CandidateSample | undefined {
    const { candidate, isAdmin = false } = this.#shown
    if (candidate === undefined) return undefined
    const { sinceMs, fault, policies, onlyCandidate, onlyLive, notCompared } = candidate.state(this.#engine, RANKED_DIFFERENCES)
    const differing = policies.toSorted((a, b) => b.wouldDeny + b.wouldAllow - a.wouldDeny - a.wouldAllow)
    const because = (names: readonly string[], reason: string) => names.map((name) => ({ name, reason }))
    return {
      sinceS: sinceMs / 1000,
      isFaulty: fault !== undefined,
      ...(fault !== undefined && isAdmin && { faults: fault.slice(0, MAX_FAULT_CHARACTERS) }),
      policies: differing.slice(0, SHOWN_DIFFS).map(({ policy: name, deniedKeys, allowedKeys, ...counts }) => ({
        name,
        ...counts,
        deniedKeys: this.#ranked(deniedKeys),
        allowedKeys: this.#ranked(allowedKeys),
      })),
      notCompared: [
        ...because(onlyCandidate, 'in the candidate only'),
        ...because(onlyLive, 'not in the candidate'),
        ...because(notCompared, 'with permits'),
      ].slice(0, SHOWN_DIFFS),
    }
  }

  #ranked(keys: readonly KeyCount[]): RankedKey[] {
    return keys.map(({ key, count }) => ({ key: this.#display(key), count }))
  }
}

function resultOf<Value>(steps: Iterator<unknown, Value>): Value {
  for (;;) {
    const { done, value } = steps.next()
    if (done) return value as Value
  }
}

/** Undefined for calls with their own rate, and where a store has the keys. */
function roomOf({ config, isShared }: Sampled): number | undefined {
  if (config === undefined || isShared) return undefined
  const { policy, maxKeys } = config
  const isSmall = [policy, ...(policy.policies ?? [])].every(({ algorithm }) => algorithm !== 'sliding-log' && algorithm !== 'concurrency')
  return maxKeys ?? (isSmall ? DEFAULT_ROOM : undefined)
}

/** Whether work was ever opened. */
function hasHeld(served: Sampled): served is Sampled & Pick<ServedPolicy, 'holds'> {
  return Object.values(served.holds ?? {}).some((count) => count !== 0)
}

function partsOf({ policy, denialsByPart }: Sampled): PartSample[] {
  return (policy?.policies ?? []).map((part) => ({
    name: part.name,
    description: describePolicy(part),
    denied: denialsByPart?.get(part.name) ?? 0,
  }))
}

function flows(counts: Counts, before: Flows | undefined, seconds: number): Flows {
  const flow = (outcome: Outcome): Flow => {
    const total = counts[outcome]
    return { total, perSecond: (total - (before?.[outcome].total ?? 0)) / seconds }
  }
  return { allowed: flow('allowed'), denied: flow('denied'), impossible: flow('impossible') }
}

/**
 * Percentiles in microseconds of the observations between two states of the buckets; undefined without any. Between the bounds of a bucket they are
 * interpolated, and above the last bound they are that bound.
 */
export function percentilesBetween(before: ArrayLike<number>, after: ArrayLike<number>): Percentiles | undefined {
  const counts = Array.from(after, (count, i) => count - (before[i] ?? 0))
  const total = counts.reduce((sum, count) => sum + count, 0)
  if (total === 0) return undefined
  const at = (share: number): number => {
    let below = 0
    for (const [i, bound] of LATENCY_BOUNDS_S.entries()) {
      const count = counts[i] as number
      if (count > 0 && below + count >= share * total) {
        const lowest = LATENCY_BOUNDS_S[i - 1] ?? 0
        return 1e6 * (lowest + ((bound - lowest) * (share * total - below)) / count)
      }
      below += count
    }
    return 1e6 * (LATENCY_BOUNDS_S.at(-1) as number)
  }
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999) }
}
