import { PolicyError } from '../errors.js'
import type { DenialKind } from './denial.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'

/**
 * What can never pass is no reason to come back later, and a client that is not wanted at all none either: hence not 429, which many try
 * again. An outage is no fault of the client.
 */
const STATUS: Readonly<Record<DenialKind, number>> = { denied: 429, impossible: 422, listed: 403, outage: 503 }

/** The status of each kind of denial. @throws {PolicyError} `OPTION_INVALID` */
export function statusesOf(status: GatekeeperOptions<never>['status'] = {}): Readonly<Record<DenialKind, number>> {
  const given = typeof status === 'number' ? { denied: status } : status
  for (const [kind, code] of Object.entries(given)) {
    if (!(kind in STATUS))
      throw new PolicyError('OPTION_UNKNOWN', `status.${kind}`, code, `is not one of ${Object.keys(STATUS).join(', ')}`)
    if (!Number.isInteger(code) || code < 200 || code > 599) {
      throw new PolicyError('OPTION_INVALID', 'status', code, 'must be the status of a response, from 200 to 599')
    }
  }
  return { ...STATUS, ...given }
}
