import { PolicyError } from '../errors.js'
import { type Key, keysFor } from '../key.js'
import { MOST_PLANS, type PlanFor, planUnder, SAME_PLAN } from '../plan-options.js'
import type { Policy } from '../policy/policy.js'
import { WholePolicy } from './all-of-policy.js'
import { carryPart } from './carried-key.js'
import type { MemoryDecisions } from './memory-decisions.js'
import type { MemoryLimiter } from './memory-limiter.js'

/**
 * Levels with plans, in one memory: each plan of a level has a table beside that of the level. A key is in one of them at most. Whoever asks about
 * it finds it in that of its plan by then, with what it has spent, its block, and what is held.
 */
export class PlannedParts {
  private readonly planFor: PlanFor
  private readonly make: (policy: Policy) => MemoryLimiter
  /** By the part of the level's own policy. */
  private readonly levels = new Map<MemoryLimiter, PlansOfLevel>()
  private readonly wholes = new Map<string, WholePolicy>()
  private made = 0

  /** @param make makes a table in the memory of the others. */
  constructor(planFor: PlanFor, make: (policy: Policy) => MemoryLimiter) {
    this.planFor = planFor
    this.make = make
  }

  /** For each level the part that has its key. @throws {PolicyError} `KEY_INVALID`, `POLICY_INVALID` */
  of(own: readonly MemoryLimiter[], key: Key): readonly MemoryLimiter[] {
    const keys = keysFor(own.length, key)
    return own.map((part, i) => this.partOf(part, keys[i] as string))
  }

  /**
   * The same for what began earlier: where a function fails, a key stays where it is.
   *
   * @param before where it was, should it owe and hold nothing.
   * @throws {PolicyError} `KEY_INVALID`
   */
  still(own: readonly MemoryLimiter[], key: Key, before: readonly MemoryDecisions[] = []): readonly MemoryLimiter[] {
    const keys = keysFor(own.length, key)
    return own.map((part, i) => this.stillAt(part, keys[i] as string, before[i]))
  }

  /** The same for one level. */
  stillAt(own: MemoryLimiter, key: string, before?: MemoryDecisions): MemoryLimiter {
    try {
      return this.partOf(own, key)
    } catch {
      return this.place(own, key, before)
    }
  }

  /** Names the parts of a key among all of them. */
  nameOf(own: readonly MemoryLimiter[], key: Key): string {
    return nameOfAll(this.still(own, key))
  }

  /** The policies of a key as one of that name: the same object as long as they are the same. */
  policyOf(own: readonly MemoryLimiter[], key: Key, name: string): Policy {
    const parts = this.of(own, key)
    const id = nameOfAll(parts)
    if (!this.wholes.has(id) && this.wholes.size >= MOST_PLANS) this.wholes.clear()
    const whole = this.wholes.get(id) ?? new WholePolicy()
    this.wholes.set(id, whole)
    return whole.of(
      name,
      parts.map((part) => part.policyOf()),
    )
  }

  /** The parts of all plans. */
  get all(): readonly MemoryLimiter[] {
    return [...this.levels.values()].flatMap((level) => level.all)
  }

  private partOf(own: MemoryLimiter, key: string): MemoryLimiter {
    const level = own.policyOf()
    const plan = this.planFor(level, key)
    if (plan === SAME_PLAN) return this.place(own, key)
    let known = this.levels.get(own)
    if (known === undefined) {
      if (plan === undefined) return own
      known = new PlansOfLevel(own)
      this.levels.set(own, known)
    }
    const part = plan === undefined ? own : known.of(level, plan, (policy) => this.another(plan, policy))
    if (!part.hasKey(key)) carryPart([own, ...known.all], part, key)
    return part
  }

  /** Where a key is. */
  private place(own: MemoryLimiter, key: string, before?: MemoryDecisions): MemoryLimiter {
    const all = [own, ...(this.levels.get(own)?.all ?? [])]
    return all.find((part) => part.hasKey(key)) ?? all.find(({ decisions }) => decisions === before) ?? own
  }

  private another(plan: Policy, policy: Policy): MemoryLimiter {
    if (this.made >= MOST_PLANS) {
      throw new PolicyError(
        'POLICY_INVALID',
        `policyFor.${policy.name}`,
        plan,
        `must return at most ${MOST_PLANS} different policies in all`,
      )
    }
    const part = this.make(policy)
    this.made++
    return part
  }
}

function nameOfAll(parts: readonly MemoryLimiter[]): string {
  return parts.map(({ section }) => section.open.section).join()
}

/** The tables of a level. */
class PlansOfLevel {
  readonly all: MemoryLimiter[] = []
  private readonly own: MemoryLimiter
  /** By text: a new object of an equal policy has the same part. */
  private readonly byText = new Map<string, MemoryLimiter>()
  /** Of {@link byPlan}: the level's own policy at the time. */
  private levelThen: Policy | undefined
  private byPlan = new WeakMap<Policy, MemoryLimiter>()

  constructor(own: MemoryLimiter) {
    this.own = own
  }

  /** @throws {PolicyError} `POLICY_INVALID` */
  of(level: Policy, plan: Policy, make: (policy: Policy) => MemoryLimiter): MemoryLimiter {
    if (this.levelThen !== level) this.byPlan = new WeakMap()
    this.levelThen = level
    return this.byPlan.get(plan) ?? this.found(level, plan, make)
  }

  private found(level: Policy, plan: Policy, make: (policy: Policy) => MemoryLimiter): MemoryLimiter {
    const policy = planUnder(level, plan)
    const text = JSON.stringify(policy)
    const part = text === JSON.stringify(level) ? this.own : (this.byText.get(text) ?? this.added(text, make(policy)))
    // An object that is not frozen may change.
    if (Object.isFrozen(plan)) this.byPlan.set(plan, part)
    return part
  }

  private added(text: string, part: MemoryLimiter): MemoryLimiter {
    this.byText.set(text, part)
    this.all.push(part)
    return part
  }
}
