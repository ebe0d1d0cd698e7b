/** The part of node-redis' cluster client that is watched. */
export interface ClusterClient {
  readonly isOpen: boolean
  readonly isReady: boolean
  readonly masters: readonly { readonly connectPromise?: unknown }[]
  connect(): Promise<unknown>
  destroy(): void
}

const LOOK_MS = 1_000
/** Looks in a row that find the client stuck before it is opened again. */
const PATIENCE = { first: 2, most: 16 } as const

/**
 * Opens a cluster client again when it is stuck. node-redis makes no further attempt when no root node answers at first, keeps an empty map
 * from a node without slots, and sends every call for a primary that it has never reached to that address, also after a failover.
 */
export class ClusterKeeper {
  readonly #client: ClusterClient
  readonly #timer: NodeJS.Timeout
  #patience: number = PATIENCE.first
  #stuckLooks = 0

  constructor(client: ClusterClient) {
    this.#client = client
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  /** Whether the client knows servers. */
  get isUsable(): boolean {
    const { isOpen, isReady, masters } = this.#client
    return isOpen && isReady && masters.length > 0
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const { isUsable } = this
    if (isUsable && this.#client.masters.every(({ connectPromise }) => connectPromise === undefined)) {
      this.#stuckLooks = 0
      this.#patience = PATIENCE.first
      return
    }
    // Other shards lose their connections too: while they work the pauses grow.
    if (++this.#stuckLooks < (isUsable ? this.#patience : PATIENCE.first)) return
    this.#stuckLooks = 0
    if (isUsable) this.#patience = Math.min(PATIENCE.most, 2 * this.#patience)
    if (this.#client.isOpen) this.#client.destroy()
    // The error event reports it; the next looks try again.
    this.#client.connect().catch(() => undefined)
  }
}
