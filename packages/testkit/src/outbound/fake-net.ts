import { type ManualClock, manualClock } from '../../../sluicegate/dist/time/clock.js'
import { turns } from '../turns.js'

/** A request as the other side sees it. */
export interface Arrival {
  readonly url: string
  readonly init: RequestInit
  readonly atMs: number
}

/** What the other side answers; an error is what fetch rejects with. */
export type Answering = (arrival: Arrival, number: number) => Response | Error | Promise<Response>

/** A fetch on a manual clock, and what came through it. Answers take `rttMs`. */
export class FakeNet {
  readonly clock: ManualClock = manualClock(1_800_000_000_000)
  readonly arrivals: Arrival[] = []
  private readonly startMs = this.clock.nowMs()
  private readonly rttMs: number
  private readonly answer: Answering

  constructor(answer: Answering = () => new Response('ok'), rttMs = 0) {
    this.answer = answer
    this.rttMs = rttMs
  }

  readonly fetch = async (input: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    const url = input instanceof Request ? input.url : String(input)
    const signal = init.signal ?? (input instanceof Request ? input.signal : undefined)
    signal?.throwIfAborted()
    const number = this.arrivals.push({ url, init, atMs: this.clock.nowMs() - this.startMs })
    if (this.rttMs > 0) await new Promise<void>((resolve) => void this.clock.after(this.rttMs, resolve))
    const answer = await this.answer(this.arrivals.at(number - 1) as Arrival, number)
    if (answer instanceof Error) throw answer
    return answer
  }

  /** When each request arrived, in milliseconds from the start. */
  get times(): number[] {
    return this.arrivals.map(({ atMs }) => atMs)
  }

  get urls(): string[] {
    return this.arrivals.map(({ url }) => url)
  }

  /** Lets time pass, a millisecond or more at once, and everything happen in it. */
  async pass(ms: number, stepMs = 1): Promise<void> {
    await settled()
    for (let left = ms; left > 0; left -= stepMs) {
      this.clock.advance(Math.min(stepMs, left))
      await settled()
    }
  }
}

/** All that needs no time has happened. */
export async function settled(): Promise<void> {
  await turns(2)
}

/** A refusal. */
export function refusal(status: 429 | 503, retryAfter?: string, onCancel?: () => void): Response {
  const body = new ReadableStream({ ...(onCancel && { cancel: onCancel }) }, { highWaterMark: 0 })
  return new Response(body, { status, headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter } })
}
