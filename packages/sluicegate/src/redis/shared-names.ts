import { onceInProcess } from '../once-in-process.js'
import { hasDefaultName } from '../policy/policy-options.js'
import type { FleetLimiter } from '../shared/fleet-limiter.js'
import { type Warn, warnOnce } from '../warn-once.js'
import type { CommandRunner } from './command-runner.js'

/** Limiters of a client by the names that they have in the store. */
const limiters = /* @__PURE__ */ onceInProcess('names of limiters', () => new WeakMap<CommandRunner, Map<string, WeakRef<FleetLimiter>>>())
/** Names of one client that are remembered. */
const MOST_NAMES = 10_000

const warnInProcess = warnOnce()

/**
 * Warns of two limiters that share a budget only because their policies have the same numbers, which names default to. What was given a name is
 * meant to be shared, and what was closed is not there any more.
 */
export function noteName(runner: CommandRunner, prefix: string, limiter: FleetLimiter, warn: Warn = warnInProcess): void {
  const known = limiters.get(runner) ?? new Map<string, WeakRef<FleetLimiter>>()
  limiters.set(runner, known)
  const { policy } = limiter
  for (const part of policy.policies ?? [policy]) {
    if (!hasDefaultName(part)) continue
    const { name } = part
    const place = `${prefix} ${name}`
    const other = known.get(place)?.deref()
    if (other !== undefined && other !== limiter && isOpen(other)) {
      const mend = "if they are about different things, give each policy a name: tokenBucket({ ..., name: 'login' })"
      warn(
        'SLUICEGATE_SHARED_NAME',
        `two limiters of one client share the budget of '${name}', a name that their numbers gave them: ${mend}`,
        place,
      )
    }
    if (known.size < MOST_NAMES) known.set(place, new WeakRef(limiter))
  }
}

function isOpen(limiter: FleetLimiter): boolean {
  try {
    return limiter.policy !== undefined
  } catch {
    return false
  }
}
