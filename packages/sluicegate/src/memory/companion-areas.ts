import type { OpenCore } from './open-core.js'

/** A piece of the memory in which each entry of the table has companions of its own. */
export interface Area {
  readonly address: number
  readonly bytes: number
}

/** The area that a policy uses, or the last one used if it needs none; and one that was left, for the next time. */
export interface Areas {
  readonly current: Area
  readonly spare: Area
}

const NONE: Area = { address: 0, bytes: 0 }

/** Of a policy that is the first: the memory was laid out for it. */
export function firstAreas(open: OpenCore, stride: number): Areas {
  return { current: { address: open.firstCompanions(), bytes: bytesFor(open, stride) }, spare: NONE }
}

/**
 * The areas after a change to a policy whose entries lie otherwise: in the spare one if that has room, in memory that is grown for it if
 * not. What two policies in turn need is so taken once.
 */
export class MovingAreas {
  private readonly open: OpenCore
  /** Grown for a change that came to nothing, because another thread was quicker. */
  private grown = NONE

  constructor(open: OpenCore) {
    this.open = open
  }

  /**
   * @param isInUse whether the current area holds anything that has to stay readable.
   * @throws {PolicyError} `RANGE_UNSUPPORTED` when there is no more memory.
   */
  moved({ current, spare }: Areas, stride: number, isInUse: boolean): Areas {
    const bytes = bytesFor(this.open, stride)
    if (!isInUse && current.bytes >= bytes) return { current, spare }
    // Nobody reads the spare one any more once every state word is of a policy that came after it.
    if (spare.bytes >= bytes && this.open.core.migrateAll()) return { current: spare, spare: current }
    if (this.grown.bytes < bytes) this.grown = { address: this.open.moreCompanions(stride), bytes }
    return { current: this.grown, spare: current.bytes >= spare.bytes ? current : spare }
  }
}

function bytesFor(open: OpenCore, stride: number): number {
  return open.entries * stride
}
