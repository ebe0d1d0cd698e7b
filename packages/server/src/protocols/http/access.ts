import { isIP } from 'node:net'
import type { Scope } from 'sluicegate-config/tokens.js'
import type { Access } from '../../access.js'
import { type HandlerWrap, type RequestHead, type Route, type Routes, wrapped } from './handler.js'
import { Problem } from './problem.js'

/** The routes of the service, by what a caller needs for them. */
export interface Surface {
  /** For everyone: orchestrators have no token. */
  readonly probes: readonly (readonly [path: string, route: Route])[]
  /** For scope `decide`. */
  readonly routes: Iterable<readonly [path: string, route: Route]>
  /** For scope `admin`. */
  readonly changes: readonly (readonly [path: string, route: Route])[]
  readonly access: Access
}

const BEARER = /^bearer +(\S+)$/i
const BASIC = /^basic +([A-Za-z0-9+/]+=*)$/i
/** Names that always mean this machine. */
const LOCAL_NAMES: ReadonlySet<string> = new Set(['localhost', 'localhost.localdomain'])

/** The routes of the HTTP listener. Verbs that change other callers' keys need a token of scope admin there. */
export function httpSurface({ probes, routes, changes, access }: Surface): Routes {
  return surfaceOf([
    [probes, unchanged],
    [routes, choosing(() => access.needsToken('decide'), requiring(access, 'decide'), unchanged)],
    [changes, choosing(() => access.has('admin'), requiring(access, 'admin'), refusing)],
  ])
}

/** The routes of the admin listener: all of them. With tokens of scope admin each request needs one; else the address alone protects it. */
export function adminSurface({ probes, routes, changes, access }: Surface): Routes {
  const guard = choosing(() => access.has('admin'), requiring(access, 'admin'), localHost)
  return surfaceOf([
    [probes, unchanged],
    [routes, guard],
    [changes, guard],
  ])
}

function surfaceOf(groups: readonly (readonly [routes: Iterable<readonly [string, Route]>, guard: HandlerWrap])[]): Routes {
  const surface = new Map<string, Route>()
  for (const [routes, guard] of groups)
    for (const [path, route] of routes)
      surface.set(
        path,
        wrapped(route, () => guard),
      )
  return surface
}

const unchanged: HandlerWrap = (handler) => handler

/** One of two, for each request: tokens change while the service runs. */
function choosing(isFirst: () => boolean, first: HandlerWrap, second: HandlerWrap): HandlerWrap {
  return (handler) => {
    const [one, other] = [first(handler), second(handler)]
    return (request, response, query) => (isFirst() ? one : other)(request, response, query)
  }
}

const refusing: HandlerWrap = () => () => {
  throw new Problem(403, 'ADMIN_ONLY', 'this is for the admin listener (--admin), or for a token of scope admin')
}

const requiring =
  (access: Access, scope: Scope): HandlerWrap =>
  (handler) =>
  (request, response, query) => {
    const secret = secretOf(request)
    if (!access.allows(secret, scope)) throw refusal(access, secret, scope)
    return handler(request, response, query)
  }

/**
 * Without tokens the admin listener is for this machine. A page whose name was made to resolve to 127.0.0.1 would send that name as its Host: only
 * addresses and names of this machine are answered.
 */
const localHost: HandlerWrap = (handler) => (request, response, query) => {
  const name = (request.headers.host ?? '').replace(/:\d*$/, '').toLowerCase()
  if (name !== '' && !LOCAL_NAMES.has(name) && isIP(name.replace(/^\[(.*)\]$/, '$1')) === 0)
    throw new Problem(403, 'ADMIN_ONLY', 'Host must be an address, or localhost, where no token of scope admin is configured')
  return handler(request, response, query)
}

function refusal(access: Access, secret: string | undefined, scope: Scope): Problem {
  if (secret !== undefined && scope === 'admin' && access.allows(secret, 'decide'))
    return new Problem(403, 'ADMIN_ONLY', 'this needs a token of scope admin')
  // Basic as well, so that a browser asks for the token and shows the page.
  const challenges = [
    ['WWW-Authenticate', 'Bearer realm="sluicegate"'],
    ['WWW-Authenticate', 'Basic realm="sluicegate", charset="UTF-8"'],
  ] as const
  const detail = secret === undefined ? 'send a token: "Authorization: Bearer TOKEN"' : 'this token is not known'
  return new Problem(401, 'TOKEN_INVALID', detail, challenges)
}

/** The bearer token of a request, or the password of Basic authentication, whatever the user name is. */
export function secretOf({ headers: { authorization } }: RequestHead): string | undefined {
  if (authorization === undefined) return undefined
  const bearer = BEARER.exec(authorization)?.[1]
  if (bearer !== undefined) return bearer
  const basic = BASIC.exec(authorization)?.[1]
  if (basic === undefined) return undefined
  const pair = Buffer.from(basic, 'base64').toString()
  return pair.slice(pair.indexOf(':') + 1)
}
