import { RegionKey } from '../../../sluicegate/dist/regions/region-key.js'
import type { Draw, Drawn, PoolBatch, Refill } from '../../../sluicegate/dist/shared/region-pool.js'

/** Rules of a pool, of which mutants break one each. */
export interface PoolRules {
  readonly name: string
  /** When tokens end, by the clock of the region's store, other than by the rules. */
  endOf?(refill: Refill, nowUs: number): number
  /** No token lasts longer. */
  readonly longestUs?: number
  /** Whether tokens from a time that is still to come are void. */
  readonly voidsAfterStep: boolean
  /** Whether of ended tokens those alone go back to the home that were not drawn. */
  readonly reclaimsLeft: boolean
  /** Whether tokens that came back in time are kept from going back to the home as well. */
  readonly backsOnce: boolean
  /** Whether the time that a clock skipped is no time without demand. */
  readonly seesSteps: boolean
  /** Whether of tokens too few for all each draw gets what falls to the time since the last. */
  readonly meters: boolean
}

export const SOUND_POOL: PoolRules = {
  name: 'sound',
  voidsAfterStep: true,
  reclaimsLeft: true,
  backsOnce: true,
  seesSteps: true,
  meters: true,
}

/** What a region holds of one key, by rules. */
export class PoolTwin extends RegionKey {
  private readonly rules: PoolRules
  /** Tokens that came with an end. */
  private readonly given = new Map<number, number>()

  constructor(rules = SOUND_POOL, saved?: string) {
    super(saved)
    this.rules = rules
  }

  override copy(): PoolTwin {
    return new PoolTwin(this.rules, this.saved)
  }

  override draw(draw: Draw): Drawn {
    return super.draw(this.rules.seesSteps ? draw : { ...draw, foreseenUs: 0 })
  }

  override reclaim(endUs: number): number {
    const tokens = super.reclaim(endUs)
    return this.rules.reclaimsLeft ? tokens : (this.given.get(endUs) ?? tokens)
  }

  override giveBack(batch: PoolBatch): boolean {
    return super.giveBack(batch) && this.rules.backsOnce
  }

  protected override steppedBack(now: number): void {
    const { batches } = this
    super.steppedBack(now)
    if (!this.rules.voidsAfterStep) this.batches = batches
  }

  protected override isShort(left: number, wanted: number): boolean {
    return this.rules.meters && super.isShort(left, wanted)
  }

  protected override finishOf(refill: Refill): number {
    return this.rules.endOf?.(refill, this.key.seen) ?? super.finishOf(refill)
  }

  protected override add(tokens: number, finish: number, id: number): void {
    if (!this.given.has(finish)) this.given.set(finish, tokens)
    super.add(tokens, finish, id, this.rules.longestUs)
  }
}
