import type { Clock } from 'sluicegate'
import type { PolicyConfig } from 'sluicegate-config/policy-config.js'
import { type Decision, Engine, type Key, type ServedPolicy, type TakeAllOptions, type TakePart } from '../engine/engine.js'
import type { Follower, KeyChange } from '../engine/shared-limiter.js'
import { FrequentKeys, type KeyCount } from './frequent-keys.js'

/** Candidates for the list of keys, of each policy and difference: a key may have 1,024 characters. */
const TRACKED_KEYS = 64

/** How a candidate decided what the policy of the same name in force had decided. */
export interface PolicyDiff {
  readonly policy: string
  readonly same: number
  /** Allowed by the policy in force, denied by the candidate. */
  readonly wouldDeny: number
  /** Denied by the policy in force, allowed by the candidate. */
  readonly wouldAllow: number
  /** What the candidate could not decide, for example a cost above its range. */
  readonly failed: number
  readonly deniedKeys: readonly KeyCount[]
  readonly allowedKeys: readonly KeyCount[]
}

/** Everything that is compared, and what is not. */
export interface Diff {
  /** In the order of the candidate. */
  readonly policies: readonly PolicyDiff[]
  /** Policies of the candidate alone: no request reaches them. */
  readonly onlyCandidate: readonly string[]
  /** Policies in force that the candidate lacks. */
  readonly onlyLive: readonly string[]
  /** Policies with concurrency, whose permits the candidate cannot follow. */
  readonly notCompared: readonly string[]
}

/** The policies in force. */
export interface LivePolicies {
  readonly policies: Iterable<{ readonly name: string }>
  policy(name: string): unknown
}

/** Counts of one policy. */
interface Tally {
  readonly served: ServedPolicy
  same: number
  wouldDeny: number
  wouldAllow: number
  failed: number
  readonly deniedKeys: FrequentKeys
  readonly allowedKeys: FrequentKeys
}

/**
 * Decides each take once more by a candidate's policies, in tables of its own in memory, and counts where the two differ. It never touches the
 * keys of the policies in force. A decision is one take in memory, as bounded in time as any; keys are bounded by the candidate's own options.
 */
export class ShadowDiff implements Follower {
  readonly #clock: Clock | undefined
  readonly #tracksKeys: boolean
  #engine: Engine | undefined
  #tallies = new Map<string, Tally>()

  constructor({ clock, tracksKeys }: { readonly clock: Clock | undefined; readonly tracksKeys: boolean }) {
    this.#clock = clock
    this.#tracksKeys = tracksKeys
  }

  /**
   * Compares by these policies from then on, and counts from 0. Policies that stay the same keep their keys.
   *
   * @throws {PolicyError | RangeError} when there is no room for one. The ones before stay then.
   */
  *using(configs: readonly PolicyConfig[]): Generator<void> {
    const engine = this.#engine ?? new Engine([], this.#clock && { clock: this.#clock })
    const changes = yield* engine.preparing(configs)
    yield* changes.inSteps()
    this.#engine = engine
    const compared = Array.from(engine.policies).filter(isCompared)
    this.#tallies = new Map(compared.map((served) => [served.name, tallyOf(served)]))
  }

  taken({ name }: ServedPolicy, key: Key, cost: number, decision: Decision): void {
    const tally = this.#tallies.get(name)
    if (tally === undefined) return
    try {
      this.#count(tally, key, decision, tally.served.take(key, cost) as Decision)
    } catch {
      tally.failed++
    }
  }

  takenAll(parts: readonly TakePart[], decisions: readonly Decision[], { passes }: TakeAllOptions): void {
    const places: number[] = []
    const own: TakePart[] = []
    for (const [i, part] of parts.entries()) {
      const tally = this.#tallies.get(part.policy.name)
      if (tally === undefined) continue
      places.push(i)
      own.push({ ...part, policy: tally.served })
    }
    if (this.#engine === undefined || own.length === 0) return
    // Parts that the candidate lacks deny nothing.
    const rest = decisions.map((decision) => ({ ...decision, allowed: true }))
    const all = (made: readonly Decision[]): Decision[] => {
      for (const [i, decision] of made.entries()) rest[places[i] as number] = decision
      return rest
    }
    const tallyAt = (i: number): Tally => this.#tallies.get((own[i] as TakePart).policy.name) as Tally
    try {
      const made = this.#engine.takeAll(own, passes && { passes: (each) => passes(all(each)) }) as Decision[]
      for (const [i, part] of own.entries()) {
        if (!part.peekOnly) this.#count(tallyAt(i), part.key, decisions[places[i] as number] as Decision, made[i] as Decision)
      }
    } catch {
      for (const i of own.keys()) tallyAt(i).failed++
    }
  }

  changed({ name }: ServedPolicy, change: KeyChange, key: Key, amount: number): void {
    const tally = this.#tallies.get(name)
    if (tally === undefined) return
    try {
      if (change === 'reset') tally.served.reset(key)
      else tally.served[change](key, amount)
    } catch {
      tally.failed++
    }
  }

  /** The differences since the candidate was last read, with at most `keys` keys for each. */
  diff(live: LivePolicies, keys: number): Diff {
    const names = Array.from(this.#engine?.policies ?? [], ({ name }) => name)
    const policies = Array.from(this.#tallies.values()).filter(({ served }) => live.policy(served.name) !== undefined)
    return {
      policies: policies.map(({ served, same, wouldDeny, wouldAllow, failed, deniedKeys, allowedKeys }) => ({
        policy: served.name,
        same,
        wouldDeny,
        wouldAllow,
        failed,
        deniedKeys: deniedKeys.top(keys),
        allowedKeys: allowedKeys.top(keys),
      })),
      onlyCandidate: names.filter((name) => live.policy(name) === undefined),
      onlyLive: Array.from(live.policies, ({ name }) => name).filter((name) => this.#engine?.policy(name) === undefined),
      notCompared: names.filter((name) => live.policy(name) !== undefined && !this.#tallies.has(name)),
    }
  }

  close(): void {
    this.#tallies.clear()
    this.#engine?.close()
    this.#engine = undefined
  }

  #count(tally: Tally, key: Key, live: Decision, candidate: Decision): void {
    const isAllowed = passed(live)
    if (isAllowed === passed(candidate)) {
      tally.same++
      return
    }
    if (isAllowed) tally.wouldDeny++
    else tally.wouldAllow++
    if (!this.#tracksKeys) return
    const keys = isAllowed ? tally.deniedKeys : tally.allowedKeys
    keys.add(typeof key === 'string' ? key : JSON.stringify(key))
  }
}

function tallyOf(served: ServedPolicy): Tally {
  const counts = { same: 0, wouldDeny: 0, wouldAllow: 0, failed: 0 }
  return { served, ...counts, deniedKeys: new FrequentKeys(TRACKED_KEYS), allowedKeys: new FrequentKeys(TRACKED_KEYS) }
}

function isCompared({ permitMs }: ServedPolicy): boolean {
  return permitMs === Number.POSITIVE_INFINITY
}

/** Whether the policy itself allowed it, in shadow mode as well. */
function passed({ allowed, wouldDeny }: Decision): boolean {
  return allowed && wouldDeny !== true
}
