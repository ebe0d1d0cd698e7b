import { isDeepStrictEqual } from 'node:util'
import { createLimiter, type Policy, PolicyError } from 'sluicegate'

/** Whether keys of one policy can stay where they are under another. Tried on a limiter without keys, so that a refusal leaves the real one alone. */
export function canBecome(from: Policy, to: Policy): boolean {
  if (from === to || isDeepStrictEqual(from, to)) return true
  using trial = createLimiter(from, { maxKeys: 1 })
  try {
    trial.update(to)
    return true
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    return false
  }
}
