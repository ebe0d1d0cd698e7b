import type { RateLimitReading } from '../headers/rate-limit-reading.js'

/** What a turn reports to its queue. */
export interface TurnKeeper {
  /** Returns what the hook returns. */
  answered(status: number, reading: RateLimitReading): unknown
  failed(): void
  left(): void
  giveBack(): void
}

/** Permission to send one request. It counts until {@link end} is called. */
export class Turn {
  private readonly keeper: TurnKeeper
  private isUnderWay = true
  private isHeld = true

  constructor(keeper: TurnKeeper) {
    this.keeper = keeper
  }

  /** The status and headers of the response have arrived. Returns what the hook returns. */
  answered(status: number, reading: RateLimitReading): unknown {
    if (!this.isUnderWay) return undefined
    this.isUnderWay = false
    return this.keeper.answered(status, reading)
  }

  /** Nothing was sent: the charge is returned. */
  unused(): void {
    if (this.isUnderWay) this.keeper.giveBack()
    this.end()
  }

  /** Everything has ended, the response's body included; without an answer so far there was none. Further calls do nothing. */
  end(): void {
    if (this.isUnderWay) {
      this.isUnderWay = false
      this.keeper.failed()
    }
    if (!this.isHeld) return
    this.isHeld = false
    this.keeper.left()
  }
}

/** The turn, once the hook has resolved as well; the request fails with what the hook rejects with. */
export async function afterHook(hooked: Promise<unknown>, turn: Promise<Turn>, fail: (error: unknown) => void): Promise<Turn> {
  hooked.then(undefined, fail)
  const leave = await turn
  try {
    await hooked
  } catch (error) {
    leave.unused()
    throw error
  }
  return leave
}
