import type { Override } from './override-map.js'
import { MOST_TIERS } from './tier-table.js'

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
