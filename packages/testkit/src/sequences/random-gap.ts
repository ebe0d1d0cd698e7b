import type { FixedWindowSpec, SinglePolicySpec } from '../oracle/policy-spec.js'
import { windowsOf } from '../oracle/windows.js'
import type { Random } from '../random.js'
import { DAY_MS, HOUR_MS, YEAR_MS } from './draws.js'
import { randomRateGapMs } from './rate-sequences.js'

/**
 * How long until the next step of a sequence that stands at `atMs`: often to an edge of the policy, such as the end of a window or
 * the time at which what was asked at one of `pastMs` ends. Negative: the clock steps back.
 */
export function randomGapMs(random: Random, policy: SinglePolicySpec, atMs: number, pastMs: readonly number[]): number {
  if ('burst' in policy) return randomRateGapMs(random, policy)
  const { windowMs } = policy
  const edgeMs = random.pick([0, 0, 0, -0.001, 0.001, 1, -1, 0.004])
  switch (random.integer(0, 11)) {
    case 0:
    case 1:
    case 2:
      return 0
    case 3:
      return random.magnitude(1, 1000) / 1000
    case 4:
      return random.fraction() * windowMs
    case 5: // the clock steps back
      return -random.pick([
        0.001,
        1,
        1000,
        random.fraction() * windowMs,
        windowMs,
        random.fraction() * 3 * windowMs,
        random.fraction() * HOUR_MS,
      ])
    case 6: // to just before the window
      return startOfWindowMs(policy, atMs) - atMs - 0.001
    case 7:
      return random.chance(0.2) ? random.fraction() * 10 * YEAR_MS : random.fraction() * 40 * DAY_MS
    case 8:
    case 9:
      return endOfWindowMs(policy, atMs) - atMs + edgeMs
    case 10:
      return random.integer(1, 3) * windowMs + edgeMs
    default:
      return random.pick(pastMs) + windowMs + edgeMs - atMs
  }
}

function startOfWindowMs(policy: Exclude<SinglePolicySpec, { burst: number }>, atMs: number): number {
  return Number(windowAt(policy, atMs).startUs) / 1000
}

function endOfWindowMs(policy: Exclude<SinglePolicySpec, { burst: number }>, atMs: number): number {
  return Number(windowAt(policy, atMs).endUs) / 1000
}

function windowAt(policy: Exclude<SinglePolicySpec, { burst: number }>, atMs: number): ReturnType<ReturnType<typeof windowsOf>> {
  const spec: FixedWindowSpec = { ...policy, algorithm: 'fixed-window' }
  return windowsOf(spec)(BigInt(Math.round(atMs * 1000)))
}
