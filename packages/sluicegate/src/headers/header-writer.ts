import { strictestOf } from '../combined-decision.js'
import { type Decision, isListed } from '../decision.js'
import type { Key } from '../limiter.js'
import type { Policy } from '../policy/policy.js'
import { Shown } from '../shown.js'
import type { Digest, HeaderFormat, Served } from './header-formats.js'
import { draft6, draft7, draft11, type ResetMeaning, xRateLimit } from './header-formats.js'
import { checkHeaderOptions, type HeaderOptions, type HeaderVersion } from './header-options.js'
import type { HeaderPair } from './header-pair.js'
import { partitionKey, type SipSecret, sipSecret } from './partition-key.js'
import { type QuotaUnit, quotaOf, retryAfterS } from './quota.js'

/** What one policy said of one request. */
export interface Answered {
  /** The policy that decided; of a key with a policy of its own, that one. */
  readonly policy: Policy
  readonly decision: Decision
  /** The key that was counted, for `pk`. */
  readonly key?: Key | undefined
  /** What the tokens are, where it is not what the options say. */
  readonly unit?: QuotaUnit | undefined
}

const POLICY = 'RateLimit-Policy'

/**
 * Decisions as header pairs, in one version. What is the same for all decisions of a policy is made once.
 *
 * - What a policy promises: see {@link quotaOf}; `t`, and the resets of other versions, {@link effectiveWindowMs}. `limit` of other versions
 *   is `q`. Where a version tells of one policy only, it is the one that binds.
 * - Of several policies at once the fields of draft 11 are lists with an item for each.
 * - A denial that time can mend has `Retry-After`: whole seconds, rounded up, never 0, of several the longest. An impossible cost has
 *   none, as waiting does not help.
 * - Of what was decided without the store during an outage only the policy is told: nobody knows what remains. So of a key on a deny list, to
 *   which nothing comes back.
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
  /** The last list of several policies, and the field that told of it. */
  private lastListed: readonly Digest[] = []
  private lastField: HeaderPair = [POLICY, '']

  /** @throws {PolicyError} `OPTION_UNKNOWN`, `OPTION_INVALID` */
  constructor(options: HeaderOptions = {}) {
    super()
    checkHeaderOptions(options)
    const { version = 'draft-11', reset = 'epoch-seconds', unit, partitionKey = false, nowMs = () => Date.now() } = options
    this.format = formatOf(version, reset)
    this.unit = unit
    if (this.format === draft11 && partitionKey !== false) this.secret = sipSecret(partitionKey === true ? undefined : partitionKey)
    this.nowMs = nowMs
  }

  /** How it is logged: not with the secret of `partitionKey`. */
  toJSON(): object {
    return { unit: this.unit, partitionKey: this.secret !== undefined }
  }

  /** Of one policy, which may be `allOf`. */
  write(policy: Policy, decision: Decision, key?: Key): HeaderPair[] {
    if (decision.parts !== undefined) return this.writeAll([{ policy, decision, key }])
    const headers = this.fieldsOfOne(policy, decision, key)
    if (!decision.allowed) addRetryAfter(headers, decision.retryAfterMs)
    return headers
  }

  /** Of several that were asked about one request. */
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
    return headers
  }

  /** What nearly every response has, without a list. */
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
    // Where a version has room for one.
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
    // Most writers serve one policy: comparing is cheaper than looking up.
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

const standard = new HeaderWriter()

/** {@link HeaderWriter.write} in draft 11 as it is. */
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

/** Whether there is something to tell: neither an outage nor a list decided. */
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
