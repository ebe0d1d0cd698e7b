import type { Decision } from '../../../sluicegate/dist/decision/decision.js'

/** A take, and what a clock said before it was asked for and after it was answered: its decision lies between. */
export interface SeenTake {
  readonly beforeUs: number
  readonly afterUs: number
  readonly isAllowed: boolean
}

export interface Saturation {
  readonly limiter: { take(key: string): Decision | Promise<Decision> }
  readonly callers: number
  readonly forMs: number
  /** The clock by which it is judged, in microseconds. */
  nowUs(): number | Promise<number>
}

const KEY = 'the key'
/** Some hundred times a second each is far more than there is, and leaves others their time. */
const REST_MS = 1

/** Callers who ask about one key again and again until the clock says that it is over; all that they saw. */
export async function saturated({ limiter, callers, forMs, nowUs }: Saturation): Promise<SeenTake[]> {
  const seen: SeenTake[] = []
  // Connections, scripts and code are there when it begins.
  await limiter.take('another key')
  const untilUs = (await nowUs()) + forMs * 1000
  const caller = async (): Promise<void> => {
    let beforeUs = await nowUs()
    while (beforeUs < untilUs) {
      const { allowed: isAllowed } = await limiter.take(KEY)
      const afterUs = await nowUs()
      seen.push({ beforeUs, afterUs, isAllowed })
      beforeUs = afterUs
      await new Promise((resolve) => setTimeout(resolve, REST_MS))
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  return seen
}

/** The clock of the server that a client is connected to. */
export function serverClock(client: { sendCommand(command: string[]): Promise<unknown> }): () => Promise<number> {
  return async () => {
    const [seconds, us] = (await client.sendCommand(['TIME'])) as readonly [string, string]
    return Number(seconds) * 1e6 + Number(us)
  }
}

/** This machine's monotonic clock, the same in all processes. */
export function machineUs(): number {
  return Number(process.hrtime.bigint()) / 1000
}
