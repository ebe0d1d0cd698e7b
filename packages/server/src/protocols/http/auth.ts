import { rateLimitHeaders } from 'sluicegate/http'
import type { Access } from '../../access.js'
import { clientKey } from '../../access.js'
import { type Engine, whenDone } from '../../engine/engine.js'
import { priorityOf } from './decision-json.js'
import type { RequestHead, Route, WholeHandler } from './handler.js'
import { refusePermits } from './permit.js'
import { isGivenTwice, Problem, refuseOtherSites } from './problem.js'
import { readQuery } from './query.js'
import { replyEmpty } from './reply.js'
import { parseTakeRequest } from './take-request.js'

const HEADER_BY_PARAMETER = { policy: 'x-sluicegate-policy', key: 'x-sluicegate-key', cost: 'x-sluicegate-cost' } as const
/** Another header that may have the key. The fast path keeps those that a handler reads: plain-request.ts lists them. */
const ADDRESS_HEADER = 'x-real-ip'
// A byte order mark belongs to the key, as in a query string: without it the key would be a different one.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * `/v1/auth`: a take in the form that nginx's `auth_request` can call. 204 lets the request pass, 403 does not: the module
 * takes every status but 2xx, 401 and 403 for a failure of this service, and would answer 500 to a 429.
 *
 * A key that is the address of a client counts as its network; any other key is taken as it is.
 *
 * Parameters for gateways that can do less, or more: `key-header=x-real-ip` takes the key from there, `denied=429` answers 429 in place of 403,
 * `ipv6-subnet=64` has other networks than /56. A request without a key receives 401, which `auth_request` passes on; `missing-key=skip` admits
 * it, any other value is the key of all such requests.
 */
export function authRoute(engine: Engine, access: Access): Route {
  const whole: WholeHandler = (request, response, query) => {
    if (!saysGateway(request)) refuseOtherSites(request)
    const given = readQuery(query)
    const denied = deniedStatus(taken(given, 'denied'))
    const subnet = subnetBits(taken(given, 'ipv6-subnet'))
    const missing = taken(given, 'missing-key')
    const values = withHeaders(request, given, taken(given, 'key-header'))
    const text = values.get('key') || undefined
    if (text === undefined && missing === 'skip') return replyEmpty(response, 204, [])
    values.set('key', text === undefined ? keyOfKeyless(missing) : clientKey(text, subnet))
    const { served, key, cost, parameters } = parseTakeRequest(engine, values)
    refusePermits(served)
    return whenDone(served.take(key, cost, priorityOf(request, access, parameters)), (decision) =>
      replyEmpty(response, decision.allowed ? 204 : denied, rateLimitHeaders(served.policyOf(key), decision)),
    )
  }
  return { GET: { whole }, HEAD: { whole } }
}

/**
 * A gateway may forward its visitor's Sec-Fetch-Site, which is no reason to refuse the gateway's request. A page of another site
 * cannot send these headers without a preflight request, which this service never allows.
 */
function saysGateway({ headers }: RequestHead): boolean {
  return headers['x-sluicegate-key'] !== undefined || headers['x-forwarded-for'] !== undefined
}

/** A parameter that is not one of the take. */
function taken(parameters: Map<string, string>, name: string): string | undefined {
  const value = parameters.get(name)
  parameters.delete(name)
  return value
}

function keyOfKeyless(missing = 'deny'): string {
  if (missing !== 'deny') return missing
  throw new Problem(401, 'KEY_MISSING', 'this request has no key: it has to say whose it is', [['WWW-Authenticate', 'ApiKey']])
}

function subnetBits(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bits = /^\d{2,3}$/.test(text) ? Number(text) : 0
  if (bits >= 32 && bits <= 128) return bits
  throw new Problem(400, 'PARAMETER_INVALID', 'ipv6-subnet must be an integer from 32 to 128')
}

function deniedStatus(text = '403'): 403 | 429 {
  if (text === '403') return 403
  if (text === '429') return 429
  throw new Problem(400, 'PARAMETER_INVALID', 'denied must be 403 or 429')
}

/**
 * What the query string has and, for each parameter missing there, a header. The proxy writes the query string itself;
 * a header may come from the client through the proxy, so it never overrides.
 */
function withHeaders(request: RequestHead, parameters: Map<string, string>, keyHeader: string | undefined): Map<string, string> {
  if (keyHeader !== undefined && keyHeader !== ADDRESS_HEADER)
    throw new Problem(400, 'PARAMETER_INVALID', `key-header must be ${ADDRESS_HEADER}`)
  const headers = { ...HEADER_BY_PARAMETER, ...(keyHeader !== undefined && { key: keyHeader }) }
  for (const [parameter, header] of Object.entries(headers)) {
    // Node joins several fields of that name.
    const value = request.headers[header] as string | undefined
    if (value === undefined || parameters.has(parameter)) continue
    if (isGivenTwice(request.rawHeaders, header))
      throw new Problem(400, 'PARAMETER_REPEATED', `${header} is given more than once: give it once`)
    parameters.set(parameter, decoded(value, header))
  }
  return parameters
}

/** Node hands a header's bytes over as Latin-1; the same key must be the same text here and in JSON. */
function decoded(value: string, header: string): string {
  try {
    return utf8.decode(Buffer.from(value, 'latin1'))
  } catch {
    throw new Problem(400, 'PARAMETER_INVALID', `${header} must be UTF-8`)
  }
}
