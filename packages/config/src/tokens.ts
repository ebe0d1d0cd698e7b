import { choice, option, secret, text, type ValuesOf, wholeOf } from './option.js'
import type { Section } from './section.js'

/**
 * What a caller may do. `decide`: take, peek, reserve, permits, metrics and the page. `admin`: that, and verbs that change other callers' keys or
 * the service: refund, penalize, block, reset, reload.
 */
export type Scope = 'decide' | 'admin'

/** Shorter secrets can be guessed. */
const MIN_SECRET_LENGTH = 16
const MAX_SECRET_LENGTH = 1_024
export const MAX_TOKENS = 1_000
const SCOPES: readonly Scope[] = ['decide', 'admin']
/** What an Authorization header can carry after "Bearer " (RFC 6750, section 2.1). */
const SECRET = /^[A-Za-z0-9._~+/-]+=*$/

/** Why `secret` cannot be a token; undefined when it can. */
export function secretFault(secret: string): string | undefined {
  if (secret.length < MIN_SECRET_LENGTH || secret.length > MAX_SECRET_LENGTH)
    return `must have ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} characters: for example the output of "openssl rand -hex 32"`
  return SECRET.test(secret) ? undefined : 'must consist of letters, digits and -._~+/, with = at the end only'
}

/** A token of the list `tokens`. */
export const TOKEN = {
  name: option('name', text('ops'), { what: 'The name of the token in logs.', example: 'gateway', required: '' }),
  scope: option('scope', choice(SCOPES), {
    what: '`decide`: requests that decide; with one such token all requests but probes need a token. `admin`: everything.',
    example: 'admin',
    required: '',
  }),
  secret: option('secret', secret({ minLength: MIN_SECRET_LENGTH, maxLength: MAX_SECRET_LENGTH }, secretFault), {
    what: 'What clients send as `Authorization: Bearer SECRET`, 16 to 1,024 characters.',
    example: '0f0e6a0b7d3c4f52a1',
    required: '',
  }),
  priority: option('priority', text('standard'), {
    what: 'The highest class that requests with the token may name, in place of `max-priority`. Default: `max-priority` of the policy.',
    example: 'low',
  }),
}

type ReadToken = ValuesOf<typeof TOKEN>

/** A bearer token of a client. Its name is for logs, never the secret. */
export type Token = { readonly [Name in 'name' | 'scope' | 'secret']: NonNullable<ReadToken[Name]> } & Partial<Pick<ReadToken, 'priority'>>

/** The list `tokens`: bearer tokens, each with a scope. Messages never contain a secret. */
export function readTokens(root: Section): Token[] {
  const list = root.list('tokens', 'tokens such as { name: ops, secret: ..., scope: admin }') ?? []
  if (list.length > MAX_TOKENS) root.fault('tokens', `must be at most ${MAX_TOKENS}, not ${list.length}`)
  return list.flatMap((section) => {
    const { name, scope, secret, priority } = wholeOf(section, TOKEN)
    if (name === undefined || scope === undefined || secret === undefined) return []
    return [{ name, scope, secret, ...(priority !== undefined && { priority }) }]
  })
}
