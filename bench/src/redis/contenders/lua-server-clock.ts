import { CAPACITY_US, TOKEN_US } from '../bucket.js'
import { bucketScript, SERVER_NOW } from '../bucket-script.js'
import type { FleetContender } from '../fleet-contender.js'
import type { Place } from '../place.js'
import { scripted } from '../scripted.js'

/** One script a decision, on the server's clock. */
export function luaServerClock(place: Place): Promise<FleetContender> {
  const numbers = [String(TOKEN_US), String(CAPACITY_US)]
  return scripted(place, bucketScript(SERVER_NOW), () => numbers)
}
