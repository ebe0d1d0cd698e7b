import { PolicyError } from '../../errors.js'
import { MOST_OVERRIDES, type Override, OverrideMap } from '../../layers/override-map.js'
import type { Overrides } from '../../overrides.js'
import type { Policy } from '../../policy/policy.js'
import { Shown } from '../../shown.js'
import type { Clock } from '../../time/clock.js'
import { warnOfStore } from '../../warn-once.js'
import type { CallGuard } from '../calls/call-guard.js'

/** All overrides of a limiter at one moment. */
export interface KeptOverrides {
  /** Changes with each change. */
  readonly version: number
  /** Policies by key; undefined when nothing changed since the requested version. Invalid policies are ignored. */
  readonly policies: Iterable<readonly [key: string, policy: unknown]> | undefined
}

/** Where the overrides of a limiter are kept. Each call is one atomic step there; it rejects without an answer. */
export interface OverrideStore {
  /** All overrides, unless `version` is current. */
  load(version: number): Promise<KeptOverrides>
  /** False when `most` keys have overrides already. */
  set(key: string, policy: Policy, most: number): Promise<boolean>
  delete(key: string): Promise<boolean>
}

/** Before the first load. */
const NEVER_LOADED = -1

/**
 * A copy of all overrides in this process, so that keys without one cost nothing. After half of `staleMs` it is checked by its version while
 * takes go on with it; a take that finds it older than `staleMs` waits for the check. Where overrides are far away, takes go on for `besideMs`
 * longer. In an outage the last copy holds, and no take waits until a check was answered.
 */
export class OverrideCache extends Shown implements Overrides<'later'> {
  private readonly store: OverrideStore
  private readonly guard: CallGuard
  private readonly clock: Clock
  private readonly staleMs: number
  private readonly besideMs: number
  private readonly own: () => Policy
  /** Called after each change that is known here. */
  onChange: () => void = () => undefined
  private known: OverrideMap
  private version = NEVER_LOADED
  /** When the copy was surely current. */
  private freshMs = Number.NEGATIVE_INFINITY
  /** When to check again after a failure. */
  private againMs = Number.NEGATIVE_INFINITY
  private loading: Promise<void> | undefined
  /** Whether the last check failed. */
  private isOut = false
  private loads = 0
  /** The last asked of those that were answered. */
  private answered = 0

  /** @param own the limiter's own policy, as it is now. */
  constructor(store: OverrideStore, guard: CallGuard, clock: Clock, staleMs: number, own: () => Policy, besideMs = 0) {
    super()
    this.besideMs = besideMs
    this.store = store
    this.guard = guard
    this.clock = clock
    this.staleMs = staleMs
    this.own = own
    this.known = new OverrideMap(own)
  }

  /** As {@link OverrideMap} shows it. */
  toJSON(): object {
    return this.known.toJSON()
  }

  /** Undefined when the copy is fresh enough; else resolves when it is, or in an outage. Never rejects. */
  refreshed(): Promise<void> | undefined {
    const nowMs = this.clock.nowMs()
    const ageMs = nowMs - this.freshMs
    if (ageMs < this.staleMs / 2) return undefined
    if (this.loading === undefined) {
      if (nowMs < this.againMs) return undefined
      this.loading = this.load(nowMs)
    }
    return this.isOut || ageMs < this.staleMs + this.besideMs ? undefined : this.loading
  }

  /** From the copy. */
  of(key: string): Override | undefined {
    return this.known.of(key)
  }

  isUsed(content: string): boolean {
    return this.known.isUsed(content)
  }

  async set(key: string, policy: Policy): Promise<void> {
    this.known.checked(key, policy)
    await this.latest()
    const { policy: checked } = this.known.checked(key, policy)
    const isSet = await this.asked(() => this.store.set(key, checked, MOST_OVERRIDES))
    if (!isSet) throw new PolicyError('OPTION_INVALID', 'overrides', key, `are at most those of ${MOST_OVERRIDES} keys`)
    await this.latest()
  }

  async get(key: string): Promise<Policy | undefined> {
    this.known.get(key) // refuses an invalid key
    await this.latest()
    return this.known.get(key)
  }

  async delete(key: string): Promise<boolean> {
    this.known.get(key)
    const was = await this.asked(() => this.store.delete(key))
    await this.latest()
    return was
  }

  async list(): Promise<ReadonlyMap<string, Policy>> {
    await this.latest()
    return this.known.list()
  }

  /** Loads the current overrides. Rejects with `OUTAGE`. */
  private async latest(): Promise<void> {
    const nowMs = this.clock.nowMs()
    const load = ++this.loads
    const kept = await this.asked(() => this.store.load(this.version))
    // Over several connections what was asked before a change may be answered after what was asked behind it.
    if (load < this.answered) return
    this.answered = load
    this.take(kept, nowMs)
  }

  private async load(nowMs: number): Promise<void> {
    try {
      await this.latest()
    } catch {
      this.isOut = true
      this.againMs = nowMs + this.staleMs / 2
    } finally {
      this.loading = undefined
    }
  }

  private take({ version, policies }: KeptOverrides, sentMs: number): void {
    this.isOut = false
    this.freshMs = Math.max(this.freshMs, sentMs)
    if (policies === undefined) return
    this.version = version
    const next = new OverrideMap(this.own)
    for (const [key, policy] of policies) {
      try {
        next.set(key, policy as Policy)
      } catch (error) {
        if (!(error instanceof PolicyError)) throw error
        warnOfStore('SLUICEGATE_OVERRIDE', `the override of ${JSON.stringify(key)} is not used: ${error.message}`)
      }
    }
    this.known = next
    this.onChange()
  }

  private asked<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    return this.guard.guarded('', call)
  }
}
