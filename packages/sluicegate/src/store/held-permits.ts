import type { Held, HeldPermit } from './key-session.js'

/** Permits that one limiter remembers. Beyond that the oldest can no longer be ended or renewed: they end by their ttl. */
const MOST_PERMITS = 100_000

/** Which permits of a key's value this process holds, by the ids of the operations that took them. */
export class HeldPermits {
  private readonly byId = new Map<number, Held>()

  add(id: number, held: Held): void {
    this.byId.set(id, held)
    if (this.byId.size <= MOST_PERMITS) return
    for (const oldest of this.byId.keys()) {
      this.byId.delete(oldest)
      break
    }
  }

  of(id: number): Held | undefined {
    return this.byId.get(id)
  }

  renew(id: number, permits: readonly (HeldPermit | undefined)[]): void {
    const held = this.byId.get(id)
    if (held !== undefined) this.byId.set(id, { ...held, permits })
  }

  drop(id: number): void {
    this.byId.delete(id)
  }
}
