/** What a client may do: `decide` for itself; `admin` also refunds and resets keys. */
export type Scope = 'decide' | 'admin'

/** Which tokens allow what. */
export interface Access {
  /** Another number after the tokens have changed. */
  readonly generation: number
  /** Whether a client needs a token for `scope`. */
  needsToken(scope: Scope): boolean
  /** Whether any token is configured for `scope`. */
  has(scope: Scope): boolean
  /** Whether a token allows `scope`; in constant time. */
  allows(secret: string | undefined, scope: Scope): boolean
  /** The highest class of priority that a token allows. */
  priorityOf(secret: string | undefined): string | undefined
}

/** A client that may send commands. */
export interface User {
  /** As the client named itself; not checked, since the token says who it is. */
  readonly name: string
  readonly scope: Scope
  /** The highest class of priority that its token allows; undefined: that of the policy. */
  readonly priority?: string | undefined
  /** The same client, by the tokens as they are now; undefined if its own is none any more. */
  again(): User | undefined
}

/** The name of a client that gives none, as in Redis. */
export const DEFAULT_USER = 'default'

/** The user of a client without a token; undefined if it needs one. */
export function userWithoutToken(access: Access): User | undefined {
  if (access.needsToken('decide')) return undefined
  return { name: DEFAULT_USER, scope: access.needsToken('admin') ? 'decide' : 'admin', again: () => userWithoutToken(access) }
}

/** The user of a token; undefined for a wrong one. */
export function userOf(access: Access, name: string, token: string): User | undefined {
  const scope = access.allows(token, 'admin') ? 'admin' : access.allows(token, 'decide') ? 'decide' : undefined
  return scope && { name, scope, priority: access.priorityOf(token), again: () => userOf(access, name, token) }
}
