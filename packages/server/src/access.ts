import { createHash, timingSafeEqual } from 'node:crypto'
import { clientNetwork } from 'sluicegate/keys'
import type { Scope, Token } from 'sluicegate-config/tokens.js'

/** Which callers may do what, for all protocols. Secrets are kept as digests of equal length, and compared in constant time. */
export class Access {
  #tokens: readonly { readonly digest: Buffer; readonly scope: Scope; readonly priority: string | undefined }[] = []
  #needsToken = false
  #generation = 0

  constructor(tokens: readonly Token[]) {
    this.use(tokens)
  }

  /** Counts the sets of tokens that there were: who was let in under an earlier one is looked at again. */
  get generation(): number {
    return this.#generation
  }

  /** Puts other tokens in the place of these. */
  use(tokens: readonly Token[]): void {
    this.#tokens = tokens.map(({ secret, scope, priority }) => ({ digest: digestOf(secret), scope, priority }))
    this.#needsToken = this.#tokens.some(({ scope }) => scope === 'decide')
    this.#generation++
  }

  /** Whether a request needs a token for `scope`. Without tokens of scope `decide` all callers may decide; `admin` always needs one. */
  needsToken(scope: Scope): boolean {
    return scope === 'admin' || this.#needsToken
  }

  /** Whether any token is configured for `scope`, so that a caller could present one. */
  has(scope: Scope): boolean {
    return this.#tokens.some((token) => includes(token.scope, scope))
  }

  /** Whether `secret`, as presented by a client, may do `scope`. Takes as long for a wrong secret as for a right one. */
  allows(secret: string | undefined, scope: Scope): boolean {
    if (secret === undefined) return false
    const digest = digestOf(secret)
    let isAllowed = false
    for (const token of this.#tokens) {
      // No early end: the time would tell which token it was.
      if (timingSafeEqual(token.digest, digest) && includes(token.scope, scope)) isAllowed = true
    }
    return isAllowed
  }

  /** The highest class of priority that requests with this secret may name; undefined where the policy says it. */
  priorityOf(secret: string | undefined): string | undefined {
    if (secret === undefined || this.#tokens.every(({ priority }) => priority === undefined)) return undefined
    const digest = digestOf(secret)
    let found: string | undefined
    for (const token of this.#tokens) if (timingSafeEqual(token.digest, digest)) found = token.priority
    return found
  }
}

function includes(has: Scope, wanted: Scope): boolean {
  return has === wanted || has === 'admin'
}

function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}

const networks = new Map<number, (text: string) => string | undefined>()

/** A key that a proxy writes, or the host of a socket: an address as the network that its client is counted by, any other text as it is. */
export function clientKey(text: string, ipv6Subnet = 56): string {
  let networkOf = networks.get(ipv6Subnet)
  if (networkOf === undefined) {
    networkOf = clientNetwork({ ipv6Subnet })
    networks.set(ipv6Subnet, networkOf)
  }
  return networkOf(text) ?? text
}
