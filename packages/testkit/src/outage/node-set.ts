import { REMEMBERED_MS } from '../../../sluicegate/dist/shared/outage/local-share.js'

const REMEMBERED_US = REMEMBERED_MS * 1000

/** The store's count of the limiters that share a policy: the twin of `lua/scripts/nodes.lua`. */
export class NodeSet {
  private readonly rememberedUs: number
  private readonly most: number
  private readonly lastUs = new Map<string, number>()

  constructor(rememberedUs: number = REMEMBERED_US, most = 10_000) {
    this.rememberedUs = rememberedUs
    this.most = most
  }

  /** How many there are when `id` calls. */
  count(nowUs: number, id: string): number {
    const { lastUs, rememberedUs, most } = this
    for (const [other, us] of lastUs) if (us <= nowUs - rememberedUs || us > nowUs + rememberedUs) lastUs.delete(other)
    if (lastUs.delete(id) || lastUs.size < most) lastUs.set(id, nowUs)
    return lastUs.size
  }

  /** The store loses its data. */
  lose(): void {
    this.lastUs.clear()
  }
}
