import { onceInProcess } from '../once-in-process.js'
import { type Policy, policiesOf } from '../policy/policy.js'
import { hasDefaultName } from '../policy/policy-options.js'
import { type Warn, warnOnce } from '../warn-once.js'
import type { SharedLimiter } from './shared-limiter.js'

/** Limiters of a client, or of a store, by their accounts there. */
const limiters = /* @__PURE__ */ onceInProcess('accounts of limiters', () => new WeakMap<object, Map<string, WeakRef<SharedLimiter>>>())
/** Accounts of one client that are remembered. */
const MOST_ACCOUNTS = 10_000

const warnInProcess = warnOnce()

/**
 * Warns of two limiters that probably share a budget by mistake, as nobody gave their policies a name. Limiters with one given name are meant to share
 * it; closed ones do not count.
 *
 * @param place the client, or the store, that both have.
 * @param accounts of each of the limiter's policies what begins its keys there.
 */
export function noteAccounts(place: object, accounts: readonly string[], limiter: SharedLimiter, warn: Warn = warnInProcess): void {
  const { policy } = limiter
  if (!hasDefaultName(policy)) return
  const known = limiters.get(place) ?? new Map<string, WeakRef<SharedLimiter>>()
  limiters.set(place, known)
  const isTaken = (account: string): boolean => {
    const other = known.get(account)?.deref()
    return other !== undefined && other !== limiter && isOpen(other)
  }
  const taken = accounts.findIndex(isTaken)
  if (taken !== -1) warn('SLUICEGATE_SHARED_NAME', sharedText(policiesOf(policy)[taken] as Policy, policy), accounts[taken])
  for (const account of accounts) if (known.size < MOST_ACCOUNTS) known.set(account, new WeakRef(limiter))
}

function sharedText(part: Policy, policy: Policy): string {
  const [why, mend] =
    part === policy
      ? ['a name that their numbers gave them', "name each policy: tokenBucket({ ..., name: 'login' })"]
      : ['a policy of two wholes without a name', "name each whole: levels({ ... }, { name: 'requests' })"]
  return `two limiters of one store share the budget of '${part.name}', ${why}: ${mend}, and both alike where one budget is meant`
}

function isOpen(limiter: SharedLimiter): boolean {
  try {
    return limiter.policy !== undefined
  } catch {
    return false
  }
}
