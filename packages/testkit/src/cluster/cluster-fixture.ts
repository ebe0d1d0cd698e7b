import { type ClusterLimiterOptions, createClusterLimiter } from '../../../sluicegate/dist/cluster/create-cluster-limiter.js'
import { type ServeOptions, serveLimiter } from '../../../sluicegate/dist/cluster/serve-limiter.js'
import { manualClock, type Policy } from '../../../sluicegate/dist/index.js'
import { channelPair } from './channel-pair.js'

export const START_MS = 1_789_000_000_000

/** A primary and a worker within this process, on one clock. */
export function fleet<P extends Policy>(
  policy: P,
  { serve = {}, worker = {} }: { serve?: ServeOptions; worker?: ClusterLimiterOptions } = {},
) {
  const clock = manualClock(START_MS)
  const pair = channelPair()
  const served = serveLimiter(policy, { clock, ...serve })
  served.serve(pair.worker)
  const limiter = createClusterLimiter(policy, { process: pair.parent, clock, ...worker })
  return { clock, pair, served, limiter }
}
