import { PolicyError } from '../errors.js'
import { checkKey } from '../key.js'
import type { Overrides } from '../overrides.js'
import { checkedPolicy } from '../policy/checked-policy.js'
import type { Policy } from '../policy/policy.js'
import { Shown } from '../shown.js'
import { checkTier, contentOf, MOST_TIERS } from './tier-table.js'

/** The largest number of keys with an override. */
export const MOST_OVERRIDES = 10_000

/** A policy with its canonical text. */
export interface Override {
  readonly policy: Policy
  readonly content: string
}

/** Overrides by key, in this process. Keys of equal policies share one object. */
export class OverrideMap extends Shown implements Overrides<'now'> {
  /** Grows with each change. */
  version = 0
  /** Called after each change. */
  onChange: () => void = () => undefined
  private readonly own: () => Policy
  private readonly byKey = new Map<string, Override>()
  private readonly byContent = new Map<string, { readonly override: Override; keys: number }>()

  /** @param own the limiter's own policy, as it is now. */
  constructor(own: () => Policy) {
    super()
    this.own = own
  }

  /** The number of keys with an override; not the keys. */
  toJSON(): { readonly keys: number } {
    return { keys: this.byKey.size }
  }

  set(key: string, policy: Policy): void {
    const { content, policy: checked } = this.checked(key, policy)
    this.version++
    this.drop(key)
    const shared = this.byContent.get(content) ?? { override: { policy: checked, content }, keys: 0 }
    shared.keys++
    this.byContent.set(content, shared)
    this.byKey.set(key, shared.override)
    this.onChange()
  }

  get(key: string): Policy | undefined {
    checkKey(key)
    return this.of(key)?.policy
  }

  delete(key: string): boolean {
    checkKey(key)
    const was = this.drop(key)
    if (was) {
      this.version++
      this.onChange()
    }
    return was
  }

  list(): ReadonlyMap<string, Policy> {
    return new Map([...this.byKey].map(([key, { policy }]) => [key, policy]))
  }

  of(key: string): Override | undefined {
    return this.byKey.get(key)
  }

  /** Whether some key has this policy for an override. */
  isUsed(content: string): boolean {
    return this.byContent.has(content)
  }

  /** The override that {@link set} would store. @throws {PolicyError} as `set` does. */
  checked(key: string, policy: Policy): Override {
    checkKey(key)
    const checked = checkedPolicy(policy)
    checkTier(checked, this.own(), 'policy')
    const content = contentOf(checked)
    if (!this.byKey.has(key) && this.byKey.size >= MOST_OVERRIDES) throw tooMany(key, `${MOST_OVERRIDES} keys`)
    const isNew = !this.byContent.has(content)
    if (isNew && this.byContent.size >= MOST_TIERS && !this.isLastOf(key)) throw tooMany(key, `${MOST_TIERS} policies`)
    return { policy: checked, content }
  }

  /** Whether no other key has the same override. */
  private isLastOf(key: string): boolean {
    const before = this.byKey.get(key)
    return before !== undefined && this.byContent.get(before.content)?.keys === 1
  }

  private drop(key: string): boolean {
    const before = this.byKey.get(key)
    if (before === undefined) return false
    this.byKey.delete(key)
    const shared = this.byContent.get(before.content)
    if (shared !== undefined && --shared.keys === 0) this.byContent.delete(before.content)
    return true
  }
}

function tooMany(key: string, most: string): PolicyError {
  return new PolicyError('OPTION_INVALID', 'overrides', key, `are at most those of ${most}: use policyFor for more`)
}

/** What an {@link OverrideTiers} is made of. */
export interface OverrideTiersParts<Counted> {
  readonly make: (override: Override) => Counted
  readonly close: (counted: Counted) => void
  /** Whether some key has this policy for an override now. */
  readonly isUsed: (content: string) => boolean
  /** Limiters from a snapshot, by the canonical text of their policies. */
  readonly known?: Iterable<readonly [content: string, counted: Counted]> | undefined
}

/**
 * The limiters of override policies. A limiter without keys stays for keys that return to its policy. When there is no room, the oldest unused one is
 * closed.
 */
export class OverrideTiers<Counted> {
  private readonly parts: OverrideTiersParts<Counted>
  private readonly byContent: Map<string, Counted>
  private readonly byOverride = new WeakMap<Override, Counted>()

  constructor(parts: OverrideTiersParts<Counted>) {
    this.parts = parts
    this.byContent = new Map(parts.known)
  }

  get all(): Iterable<Counted> {
    return this.byContent.values()
  }

  of(override: Override): Counted {
    const known = this.byOverride.get(override)
    if (known !== undefined) return known
    const counted = this.byContent.get(override.content) ?? this.made(override)
    this.byOverride.set(override, counted)
    return counted
  }

  private made(override: Override): Counted {
    if (this.byContent.size >= MOST_TIERS) this.makeRoom()
    const counted = this.parts.make(override)
    this.byContent.set(override.content, counted)
    return counted
  }

  private makeRoom(): void {
    for (const [content, counted] of this.byContent) {
      if (this.parts.isUsed(content)) continue
      this.byContent.delete(content)
      this.parts.close(counted)
      return
    }
  }
}
