import type { OpenCore } from './core.js'
import { emissionOf } from './emission.js'
import { checkedPolicy } from './checked-policy.js'
import type { Algorithm, Policy } from './policy.js'

// The part of a policy block that only JavaScript reads: three numbers, the algorithm, the length of the name, the name.
const LIMIT = 0
const WINDOW_MS = 8
const BURST = 16
const ALGORITHM = 24
const NAME_LENGTH = 25
const NAME = 26

const ALGORITHMS: readonly Algorithm[] = ['token-bucket', 'gcra']

/** A packed word has 24 bits for the level, which may stand up to one tick of 1,024 microseconds above the capacity. */
const PACKED_LEVELS = 2 ** 24
const TICK_US = 1024

/** Writes the policy into a block of its own and puts it in force for all threads from `nowUs` on. */
export function publishPolicy({ core, description }: OpenCore, policy: Policy, nowUs: number): void {
  const { unitsPerUs, unitsPerToken, capacity } = emissionOf(policy)
  const block = core.propose()
  const view = description(block)
  view.setFloat64(LIMIT, policy.limit, true)
  view.setFloat64(WINDOW_MS, policy.windowMs, true)
  view.setFloat64(BURST, policy.burst, true)
  view.setUint8(ALGORITHM, ALGORITHMS.indexOf(policy.algorithm))
  view.setUint8(NAME_LENGTH, policy.name.length)
  for (let i = 0; i < policy.name.length; i++) view.setUint8(NAME + i, policy.name.charCodeAt(i))
  const packed = policy.algorithm === 'token-bucket' && capacity + TICK_US * unitsPerUs < PACKED_LEVELS
  core.update(block, unitsPerUs, unitsPerToken, capacity, packed, nowUs)
}

/** The policy in force, as this thread's core last saw it; undefined when its block was written anew meanwhile. */
export function publishedPolicy({ core, description }: OpenCore): Policy | undefined {
  const view = description(core.policyBlock())
  const letters = Array.from({ length: view.getUint8(NAME_LENGTH) }, (_, i) => view.getUint8(NAME + i))
  const policy = {
    algorithm: ALGORITHMS[view.getUint8(ALGORITHM)],
    limit: view.getFloat64(LIMIT, true),
    windowMs: view.getFloat64(WINDOW_MS, true),
    burst: view.getFloat64(BURST, true),
    name: String.fromCharCode(...letters),
  }
  return core.isWhole() ? checkedPolicy(policy) : undefined
}
