import { nameOf } from '../key-name.js'
import type { Delay, SlowDown } from '../slow-down.js'
import { Asked } from './asked.js'

/**
 * The longest delay that limits ask for one request that they let pass, with a place among the delayed of that limit; undefined for none. Where
 * there is no place: the limit's denial.
 */
export function longestDelay<Request>(all: readonly Asked[], request: Request): Delay | Asked | undefined {
  let longest: Asked | undefined
  let ms = 0
  for (const asked of all) {
    const slowDown = slowDownOf<Request>(asked)
    if (slowDown === undefined) continue
    const own = slowDown.delayMs(asked.decision, asked.policy, request)
    if (own <= ms) continue
    ms = own
    longest = asked
  }
  if (longest === undefined) return undefined
  const leave = slowDownOf<Request>(longest)?.enter(nameOf(longest.key))
  return leave === undefined ? refused(longest, ms) : { ms, leave }
}

function slowDownOf<Request>({ rule }: Asked): SlowDown<Request> | undefined {
  // Clients hear nothing of what is in the shadow.
  return rule.shadow ? undefined : (rule.slowDown as SlowDown<Request> | undefined)
}

function refused({ rule, key, cost, policy, decision }: Asked, ms: number): Asked {
  return new Asked(rule, key, cost, policy, { ...decision, allowed: false, retryAfterMs: Math.max(1, Math.ceil(ms)) })
}
