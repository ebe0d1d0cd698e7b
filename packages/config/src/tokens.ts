import type { Section } from './section.js'

/**
 * What a caller may do. `decide`: take, peek, reserve, permits, metrics and the page. `admin`: that, and verbs that change other callers' keys or
 * the service: refund, penalize, block, reset, reload.
 */
export type Scope = 'decide' | 'admin'

/** A bearer token of a client. */
export interface Token {
  /** For logs; never the secret. */
  readonly name: string
  readonly secret: string
  readonly scope: Scope
  /** The highest class of priority that requests with it may name; undefined: that of the policy. */
  readonly priority?: string | undefined
}

/** Shorter secrets can be guessed. */
const MIN_SECRET_LENGTH = 16
const MAX_SECRET_LENGTH = 1_024
const MAX_TOKENS = 1_000
const SCOPES: readonly Scope[] = ['decide', 'admin']
/** What an Authorization header can carry after "Bearer " (RFC 6750, section 2.1). */
const SECRET = /^[A-Za-z0-9._~+/-]+=*$/

/** Why `secret` cannot be a token; undefined when it can. */
export function secretFault(secret: string): string | undefined {
  if (secret.length < MIN_SECRET_LENGTH || secret.length > MAX_SECRET_LENGTH)
    return `must have ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} characters: for example the output of "openssl rand -hex 32"`
  return SECRET.test(secret) ? undefined : 'must consist of letters, digits and -._~+/, with = at the end only'
}

/** The list `tokens`: bearer tokens, each with a scope. Messages never contain a secret. */
export function readTokens(root: Section): Token[] {
  const list = root.list('tokens', 'tokens such as { name: ops, secret: ..., scope: admin }') ?? []
  if (list.length > MAX_TOKENS) root.fault('tokens', `must be at most ${MAX_TOKENS}, not ${list.length}`)
  return list.flatMap((section) => {
    const name = section.text('name', 'ops')
    const scope = section.oneOf('scope', SCOPES)
    const secret = section.secret('secret')
    const priority = section.text('priority', 'standard')
    for (const option of ['name', 'scope', 'secret']) section.require(option)
    const fault = secret === undefined ? undefined : secretFault(secret)
    if (fault !== undefined) section.fault('secret', fault)
    section.done()
    return name === undefined || scope === undefined || secret === undefined
      ? []
      : [{ name, scope, secret, ...(priority !== undefined && { priority }) }]
  })
}
