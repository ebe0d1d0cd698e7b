import type { Contender } from '../contender.js'
import type { Place } from './servers.js'

/** A limiter of a fleet. Without `awaited` it answers itself whenever it can, and else with a promise. */
export interface FleetContender extends Contender {
  /** Decisions that it made by itself because no answer came in time, since it was made. */
  withoutStore?(): number
}

/** Connects to the servers and is ready to decide. */
export type FleetContenderFactory = (place: Place) => Promise<FleetContender>
