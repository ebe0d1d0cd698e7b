import { type Decision, isListed, strictestOf } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import type { Key } from '../limiter.js'
import { checkFunction, checkOneOf, checkOptionNames } from '../options/option-checks.js'
import type { Policy } from '../policy/policy.js'
import { Shown } from '../shown.js'
import type { HeaderPair } from './header.js'
import {
  type Digest,
  draft6,
  draft7,
  draft11,
  type HeaderFormat,
  RESET_MEANINGS,
  type ResetMeaning,
  type Served,
  structuredString,
  xRateLimit,
} from './header-formats.js'
import { partitionKey, type SipSecret, sipSecret } from './partition-key.js'
import { type QuotaUnit, quotaOf, retryAfterS } from './quota.js'

/** Drafts 8 to 10 are written as draft 11. `none`: only `Retry-After`. */
export type HeaderVersion = 'draft-11' | 'draft-10' | 'draft-9' | 'draft-8' | 'draft-7' | 'draft-6' | 'x-ratelimit' | 'none'

/** Which headers describe decisions, and how. */
export interface HeaderOptions {
  /**
   * Which headers describe decisions.
   *
   * @defaultValue `'draft-11'`
   * @example { version: 'draft-6' }
   */
  readonly version?: HeaderVersion
  /**
   * With `x-ratelimit`: the meaning of its reset.
   *
   * @defaultValue `'epoch-seconds'`
   * @example { version: 'x-ratelimit', reset: 'delta-seconds' }
   */
  readonly reset?: ResetMeaning
  /**
   * With `draft-11`: what tokens are, of one limit or of all without their own. `requests` is not written; the unit of `concurrency` always is.
   *
   * @defaultValue `'requests'`
   * @example { unit: 'content-bytes' }
   */
  readonly unit?: QuotaUnit
  /**
   * With `draft-11`: write a keyed hash of the key as `pk`. True for a secret of this process; for several processes 32 hexadecimal digits,
   * the same in all.
   *
   * @defaultValue `false`
   * @example { partitionKey: true }
   */
  readonly partitionKey?: boolean | string
  /** Unix time in milliseconds, for resets that are moments: `Date.now`. @internal */
  readonly nowMs?: () => number
}

const HEADER_VERSIONS: readonly HeaderVersion[] = [
  'draft-11',
  'draft-10',
  'draft-9',
  'draft-8',
  'draft-7',
  'draft-6',
  'x-ratelimit',
  'none',
]
const UNITS: readonly QuotaUnit[] = ['requests', 'content-bytes', 'concurrent-requests']
const OPTIONS: readonly string[] = ['version', 'reset', 'unit', 'partitionKey', 'nowMs']
const SECRET = /^[0-9a-fA-F]{32}$/

/** @returns the options to read, see `asGiven`. @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
export function checkHeaderOptions(options: HeaderOptions): HeaderOptions {
  if (typeof options !== 'object' || options === null) {
    throw new PolicyError('OPTION_INVALID', 'headers', options, "must be a version such as 'draft-11', or an object with options")
  }
  const own = checkOptionNames(options, OPTIONS, 'headers')
  const { version, reset, unit, partitionKey, nowMs } = own
  checkOneOf('version', version, HEADER_VERSIONS)
  checkOneOf('reset', reset, RESET_MEANINGS)
  checkUnit(unit)
  if (partitionKey !== undefined && typeof partitionKey !== 'boolean' && !(typeof partitionKey === 'string' && SECRET.test(partitionKey))) {
    // The value may be a secret, even if it is invalid: it is not part of the error.
    throw new PolicyError('OPTION_INVALID', 'partitionKey', typeof partitionKey, 'must be true, false or 32 hexadecimal digits')
  }
  checkFunction('nowMs', nowMs, 'must be a function that reads Unix time in milliseconds')
  return own
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkUnit(unit: unknown): void {
  checkOneOf('unit', unit, UNITS)
}

/** A decision of one policy about a request. */
export interface Answered {
  /** The policy that decided; for a key with its own policy, that one. */
  readonly policy: Policy
  readonly decision: Decision
  /** The key that was counted, for `pk`. */
  readonly key?: Key | undefined
  /** What tokens are; default as in the options. */
  readonly unit?: QuotaUnit | undefined
}

const POLICY = 'RateLimit-Policy'
/** No draft has soft limits: a list of the names of the policies, as those fields have them. */
const SOFT = 'RateLimit-Soft'

/**
 * Writes decisions as header pairs, in one version. Parts that are the same for all decisions of a policy are made once.
 *
 * - For the quota of a policy see {@link quotaOf}; for `t`, and the resets of other versions, {@link effectiveWindowMs}. `limit` of other
 *   versions is `q`. A version with room for one policy describes the binding one.
 * - For several policies the fields of draft 11 are lists with an item for each.
 * - A denial that ends with time has `Retry-After`: whole seconds, rounded up, >= 1, of several the longest. An impossible cost has none,
 *   as waiting does not help.
 * - `RateLimit-Soft` names the policies of which a soft limit is reached.
 * - For a decision without the store in an outage only the policy is written: what remains is not known. The same for a key on a deny list.
 *
 * Source: draft-ietf-httpapi-ratelimit-headers-11, -07 and -06; RFC 9110, section 10.2.3.
 *
 * @example
 * const writer = new HeaderWriter({ version: 'draft-7' })
 * for (const [name, value] of writer.write(limiter.policy, limiter.take(key))) response.setHeader(name, value)
 */
export class HeaderWriter extends Shown {
  private readonly format: HeaderFormat | undefined
  private readonly unit: QuotaUnit | undefined
  private readonly secret: SipSecret | undefined
  private readonly nowMs: () => number
  private readonly digests = new WeakMap<Policy, Digest>()
  private lastPolicy: Policy | undefined
  private lastDigest: Digest | undefined
  /** The last list of several policies, and its field. */
  private lastListed: readonly Digest[] = []
  private lastField: HeaderPair = [POLICY, '']

  /** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
  constructor(options: HeaderOptions = {}) {
    super()
    const own = checkHeaderOptions(options)
    const { version = 'draft-11', reset = 'epoch-seconds', unit, partitionKey = false, nowMs = () => Date.now() } = own
    this.format = formatOf(version, reset)
    this.unit = unit
    const isKeyed = this.format === draft11 && partitionKey !== false
    this.secret = isKeyed ? sipSecret(partitionKey === true ? undefined : partitionKey) : undefined
    this.nowMs = nowMs
  }

  /** For logs, without the secret of `partitionKey`. */
  toJSON(): object {
    return { unit: this.unit, partitionKey: this.secret !== undefined }
  }

  /** Headers of one decision, which may be of `allOf`. */
  write(policy: Policy, decision: Decision, key?: Key): HeaderPair[] {
    if (decision.parts !== undefined) return this.writeAll([{ policy, decision, key }])
    const headers = this.fieldsOfOne(policy, decision, key)
    if (!decision.allowed) addRetryAfter(headers, decision.retryAfterMs)
    this.addSoft(headers, softOf(decision))
    return headers
  }

  /** Headers of several decisions about one request. */
  writeAll(answers: readonly Answered[]): HeaderPair[] {
    const served: Served[] = []
    let retryAfterMs = 0
    for (const { policy, decision, key, unit } of answers) {
      const { parts } = decision
      if (parts === undefined) served.push(this.served(policy, decision, key, unit))
      else for (const [i, part] of parts.entries()) served.push(this.served(policy.policies?.[i], part, keyAt(key, i), unit))
      if (!decision.allowed && decision.retryAfterMs > retryAfterMs) retryAfterMs = decision.retryAfterMs
    }
    const headers = this.fieldsOf(served)
    if (retryAfterMs > 0) addRetryAfter(headers, retryAfterMs)
    this.addSoft(
      headers,
      answers.flatMap(({ decision }) => softOf(decision)),
    )
    return headers
  }

  private addSoft(headers: HeaderPair[], policies: readonly string[]): void {
    if (policies.length > 0 && this.format !== undefined) headers.push([SOFT, policies.map(structuredString).join(', ')])
  }

  /** For nearly every response: no list is made. */
  private fieldsOfOne(policy: Policy, decision: Decision, key: Key | undefined): HeaderPair[] {
    const { format } = this
    if (format === undefined) return []
    const digest = this.digestOf(policy, this.unit)
    if (isCounted(decision)) return format.fields(digest.alone, digest, decision, this.partitionKeyOf(key), this.nowMs)
    return format.item === undefined ? [] : [digest.alone]
  }

  private fieldsOf(served: readonly Served[]): HeaderPair[] {
    const { format } = this
    if (format === undefined || served.length === 0) return []
    const counted = served.filter(({ decision }) => isCounted(decision))
    const policies = this.policyField(served, format)
    if (counted.length === 0) return format.item === undefined ? [] : [policies]
    if (counted.length > 1 && format.several !== undefined) return format.several(policies, counted)
    // Versions with room for one policy.
    const { digest, decision, partitionKey } = strictestOf(counted) as Served
    return format.fields(policies, digest, decision, partitionKey, this.nowMs)
  }

  private partitionKeyOf(key: Key | undefined): string | undefined {
    const { secret } = this
    return secret === undefined || key === undefined ? undefined : partitionKey(keyAt(key, 0), secret)
  }

  private served(policy: Policy | undefined, decision: Decision, key: Key | undefined, unit: QuotaUnit | undefined): Served {
    if (policy === undefined) throw new RangeError('a decision of more parts than its policy has')
    return { digest: this.digestOf(policy, unit ?? this.unit), decision, partitionKey: this.partitionKeyOf(key) }
  }

  private digestOf(policy: Policy, unit: QuotaUnit | undefined): Digest {
    // Most writers serve one policy: a comparison is cheaper than a lookup.
    const { lastDigest } = this
    if (policy === this.lastPolicy && lastDigest !== undefined && lastDigest.unit === unit) return lastDigest
    let digest = this.digests.get(policy)
    if (digest === undefined || digest.unit !== unit) {
      digest = this.digested(policy, unit)
      this.digests.set(policy, digest)
    }
    this.lastPolicy = policy
    this.lastDigest = digest
    return digest
  }

  private digested(policy: Policy, unit: QuotaUnit | undefined): Digest {
    const { format } = this
    const quota = quotaOf(policy, unit)
    const item = format?.item?.(quota) ?? ''
    return { quota, unit, item, alone: [POLICY, item], prefix: format?.prefix?.(quota) ?? '' }
  }

  private policyField(served: readonly Served[], { listed }: HeaderFormat): HeaderPair {
    if (served.length === 1) return (served[0] as Served).digest.alone
    const { lastListed } = this
    if (lastListed.length !== served.length || served.some(({ digest }, i) => digest !== lastListed[i])) {
      const digests = served.map(({ digest }) => digest)
      this.lastListed = digests
      this.lastField = [POLICY, (listed?.(digests) ?? digests).map(({ item }) => item).join(', ')]
    }
    return this.lastField
  }
}

/** Its own: what another module wrote into `Object.prototype` is none. */
function softOf(decision: Decision): readonly string[] {
  return Object.hasOwn(decision, 'soft') ? (decision.soft ?? []) : []
}

const standard = new HeaderWriter()

/** {@link HeaderWriter.write} in draft 11 with default options. */
export function rateLimitHeaders(policy: Policy, decision: Decision): HeaderPair[] {
  return standard.write(policy, decision)
}

function formatOf(version: HeaderVersion, reset: ResetMeaning): HeaderFormat | undefined {
  switch (version) {
    case 'none':
      return undefined
    case 'x-ratelimit':
      return xRateLimit(reset)
    case 'draft-6':
      return draft6
    case 'draft-7':
      return draft7
    default:
      return draft11
  }
}

/** False for decisions in an outage, and by a deny list. */
function isCounted(decision: Decision): boolean {
  return decision.source !== 'outage' && (decision.allowed || !isListed(decision))
}

function addRetryAfter(headers: HeaderPair[], retryAfterMs: number): void {
  if (retryAfterMs !== Number.POSITIVE_INFINITY) headers.push(['Retry-After', retryAfterS(retryAfterMs)])
}

function keyAt(key: Key, i: number): string
function keyAt(key: Key | undefined, i: number): string | undefined
function keyAt(key: Key | undefined, i: number): string | undefined {
  return typeof key === 'string' || key === undefined ? key : key[i]
}
