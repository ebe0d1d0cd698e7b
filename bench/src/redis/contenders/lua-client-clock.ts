import { CAPACITY_US, TOKEN_US, wallUs } from '../bucket.js'
import { bucketScript } from '../bucket-script.js'
import type { FleetContender } from '../fleet-contender.js'
import type { Place } from '../place.js'
import { scripted } from '../scripted.js'

/** One script a decision, with the time of the caller: clocks of several processes that disagree grant or withhold tokens. */
export function luaClientClock(place: Place): Promise<FleetContender> {
  return scripted(place, bucketScript('tonumber(ARGV[3])'), () => [String(TOKEN_US), String(CAPACITY_US), String(wallUs())])
}
