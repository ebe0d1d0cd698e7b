import type { RateLimitReading } from '../headers/rate-limit-reading.js'

/** What a turn tells the line that gave it. */
export interface TurnKeeper {
  /** Returns what a hook says. */
  answered(status: number, reading: RateLimitReading): unknown
  failed(): void
  left(): void
  giveBack(): void
}

/** Leave to send one request. It may be told what came back, and has to be told when it is over: until then it counts. */
export class Turn {
  private readonly keeper: TurnKeeper
  private isUnderWay = true
  private isHeld = true

  constructor(keeper: TurnKeeper) {
    this.keeper = keeper
  }

  /** The response's status and headers are there. Returns what a hook says. */
  answered(status: number, reading: RateLimitReading): unknown {
    if (!this.isUnderWay) return undefined
    this.isUnderWay = false
    return this.keeper.answered(status, reading)
  }

  /** Nothing was sent: what was taken for it goes back. */
  unused(): void {
    if (this.isUnderWay) this.keeper.giveBack()
    this.end()
  }

  /** All is over, the response's body as well; without an answer until now there will be none. Once is enough, more does no harm. */
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

/** The turn, once the hook is done as well; what it rejects with is what the request fails with. */
export async function heardOut(told: Promise<unknown>, turn: Promise<Turn>, fail: (error: unknown) => void): Promise<Turn> {
  told.then(undefined, fail)
  const leave = await turn
  try {
    await told
  } catch (error) {
    leave.unused()
    throw error
  }
  return leave
}
