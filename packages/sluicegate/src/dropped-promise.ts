import { PolicyError } from './errors.js'
import { warnOnce } from './warn-once.js'

const warn = warnOnce()

/**
 * The same promise, which may be dropped: its rejection ends no process. For verbs that correct an account and whose answer few callers need,
 * such as `settle`, `refund` and `release`. Who awaits it gets the rejection. A refused argument is also reported once for each policy: it is
 * often a number from upstream, such as `usage.total_tokens` of an answer that had none, and work that is done and paid for must not fail for
 * it. An outage is not reported here: the statistics count it.
 *
 * @param policyName the name of the policy, for the report, which never has a key.
 */
export function droppable<Value>(promise: Promise<Value>, verb: string, policyName: () => string): Promise<Value> {
  promise.then(undefined, (error: unknown) => {
    if (error instanceof PolicyError) report(error, verb, policyName)
  })
  return promise
}

function report(error: PolicyError, verb: string, policyName: () => string): void {
  try {
    const name = policyName()
    warn(
      'SLUICEGATE_CALL_REFUSED',
      () => `${verb}() of the policy ${name} was refused and changed nothing: ${error.option} ${reasonOf(error)}`,
      name,
    )
  } catch {
    // The limiter was closed meanwhile, and has no policy any more.
  }
}

/** Without the value of a key. */
function reasonOf({ code, mend, value }: PolicyError): string {
  return code === 'KEY_INVALID' ? mend : `${mend} (got ${typeof value === 'number' ? value : typeof value})`
}

/** Makes what these methods of an object answer or throw a promise, and that {@link droppable}. */
export function withDroppable<Target extends object>(
  target: Target,
  verbs: readonly (keyof Target & string)[],
  policyName: () => string,
): Target {
  for (const verb of verbs) {
    const call = target[verb] as (...args: unknown[]) => unknown
    const asked = async (...args: unknown[]): Promise<unknown> => call.apply(target, args)
    const value = (...args: unknown[]): Promise<unknown> => droppable(asked(...args), verb, policyName)
    Object.defineProperty(target, verb, { value, configurable: true, writable: true })
  }
  return target
}
