import { PolicyError } from '../errors.js'
import { unknownOption } from '../unknown-option.js'
import type { DenialKind } from './denial.js'
import type { GatekeeperOptions } from './gatekeeper-options.js'

/**
 * What can never pass is no reason to come back later, and a client that is not wanted at all none either: hence not 429, which many try
 * again. An outage is no fault of the client.
 */
const STATUS: Readonly<Record<DenialKind, number>> = { denied: 429, impossible: 422, listed: 403, outage: 503 }

/** Those of responses without a body. */
const WITHOUT_BODY: readonly unknown[] = [204, 205, 304]

/** The status of each kind of denial. @throws {PolicyError} `OPTION_INVALID` */
export function statusesOf(status: GatekeeperOptions<never>['status'] = {}): Readonly<Record<DenialKind, number>> {
  const given = typeof status === 'number' ? { denied: status } : status
  if (typeof given !== 'object' || given === null) {
    throw new PolicyError('OPTION_INVALID', 'status', given, `must be a status, or one for some of ${Object.keys(STATUS).join(', ')}`)
  }
  for (const [kind, code] of Object.entries(given)) {
    if (!Object.hasOwn(STATUS, kind)) throw unknownOption({ option: `status.${kind}`, value: code, known: Object.keys(STATUS) })
    checkStatus('status', code)
  }
  return { ...STATUS, ...given }
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkStatus(option: string, status: unknown): void {
  if (Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599 && !WITHOUT_BODY.includes(status)) return
  throw new PolicyError('OPTION_INVALID', option, status, 'must be the status of a response with a body, from 200 to 599')
}
