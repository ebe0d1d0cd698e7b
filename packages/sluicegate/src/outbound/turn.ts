import type { RateLimitReading } from '../headers/rate-limit-reading.js'

/** What a turn tells the line that gave it. */
export interface TurnKeeper {
  answered(status: number, reading: RateLimitReading): void
  failed(): void
  left(): void
  giveBack(): void
}

/** Leave to send one request. It has to be told what came of it, and when it is over: until then it counts. */
export class Turn {
  private readonly keeper: TurnKeeper
  private isUnderWay = true
  private isHeld = true

  constructor(keeper: TurnKeeper) {
    this.keeper = keeper
  }

  /** The response's status and headers are there. */
  answered(status: number, reading: RateLimitReading): void {
    if (!this.isUnderWay) return
    this.isUnderWay = false
    this.keeper.answered(status, reading)
  }

  /** No response came. */
  failed(): void {
    if (this.isUnderWay) {
      this.isUnderWay = false
      this.keeper.failed()
    }
    this.end()
  }

  /** Nothing was sent: what was taken for it goes back. */
  unused(): void {
    if (this.isUnderWay) this.keeper.giveBack()
    this.failed()
  }

  /** The response's body is through. */
  end(): void {
    if (!this.isHeld) return
    this.isHeld = false
    this.keeper.left()
  }
}
