import { copiedInit, copiedInput, type InitLike, isRepeatable, isRequest, type RequestLike } from './copied-arguments.js'
import { drop, type ResponseLike } from './held-response.js'

/** Sends one request, which follows no redirect where `init` says so. */
export type SendOne = (input: unknown, init: unknown) => Promise<ResponseLike>

/** As browsers do. Source: Fetch standard, "HTTP-redirect fetch". */
const MOST_REDIRECTS = 20
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
/** Of a body, which is gone with it. */
const BODY_HEADERS = ['content-encoding', 'content-language', 'content-location', 'content-type', 'content-length']
/** For one origin alone. */
const ORIGIN_HEADERS = ['authorization', 'proxy-authorization', 'cookie', 'host']
/** What is taken over from a Request, beside method, headers and body. */
const REQUEST_FIELDS = ['signal', 'cache', 'credentials', 'integrity', 'keepalive', 'referrerPolicy', 'priority', 'dispatcher'] as const

/** A request on its way through redirects. */
interface Hop {
  readonly input: unknown
  readonly init: InitLike & Readonly<Record<string, unknown>>
}

/** Whether redirects of these arguments are to be followed: in pages and their workers the runtime hides where a redirect leads. */
export function isFollowed(input: unknown, init: unknown): boolean {
  if ('document' in globalThis || 'WorkerGlobalScope' in globalThis) return false
  const mode = (init as InitLike | null | undefined)?.redirect ?? (isRequest(input) ? input.redirect : undefined)
  return mode === undefined || mode === 'follow'
}

/**
 * Sends a request and what its redirects lead to, each by `sendOne`: so each hop waits for the host that it reaches. Source: Fetch standard,
 * "HTTP-redirect fetch": methods, bodies and headers change as there.
 */
export async function followed(input: unknown, init: unknown, sendOne: SendOne): Promise<ResponseLike> {
  const given = copiedInit(init) as Hop['init']
  // Read before the body of the request is used up.
  const spare = isRequest(input) && input.body != null && given.body == null ? input.clone() : undefined
  // With a second argument fetch drops the referrer of a Request.
  const { referrer } = (isRequest(input) ? input : {}) as InitLike
  const isAlone = Object.keys(given).length === 0 && referrer !== undefined
  let hop: Hop = { input: copiedInput(input), init: { ...given, ...(isAlone && { referrer }), redirect: 'manual' } }
  let url = new URL(isRequest(input) ? input.url : String(input))
  try {
    for (let redirects = 0; ; redirects++) {
      const response = await sendOne(hop.input, hop.init)
      const target = targetOf(response, url)
      if (target === undefined) return redirects === 0 ? response : markRedirected(response)
      drop(response)
      if (redirects === MOST_REDIRECTS) throw failed('redirect count exceeded')
      if (target.protocol !== 'http:' && target.protocol !== 'https:') throw failed('URL scheme must be a HTTP(S) scheme')
      hop = await next(hop, { status: response.status, from: url, to: target, spare })
      url = target
    }
  } finally {
    if (spare !== undefined) drop(spare)
  }
}

/** Where a response leads; undefined for one that leads nowhere. A fragment is inherited. */
function targetOf({ status, headers }: ResponseLike, from: URL): URL | undefined {
  if (!REDIRECTS.has(status)) return undefined
  const location = new Headers(headers as Headers).get('location')
  if (location === null) return undefined
  try {
    const target = new URL(location, from)
    if (target.hash === '') target.hash = from.hash
    return target
  } catch {
    throw failed('invalid redirect URL')
  }
}

interface Redirect {
  readonly status: number
  readonly from: URL
  readonly to: URL
  /** A copy of the first request, with its body. */
  readonly spare: RequestLike | undefined
}

async function next({ input, init }: Hop, { status, from, to, spare }: Redirect): Promise<Hop> {
  const request = isRequest(input) ? input : undefined
  const method = String(init.method ?? request?.method ?? 'GET').toUpperCase()
  const headers = new Headers((init.headers ?? request?.headers) as Headers | undefined)
  const kept: Record<string, unknown> = { ...(request && fieldsOf(request)), ...init }
  const hasBody = init.body != null || (request !== undefined && spare !== undefined)
  let body: unknown
  const isChanged = status === 303 ? method !== 'GET' && method !== 'HEAD' : (status === 301 || status === 302) && method === 'POST'
  if (isChanged) for (const name of BODY_HEADERS) headers.delete(name)
  else if (hasBody) body = init.body ?? (await (spare as unknown as Response).arrayBuffer())
  if (!isRepeatable(body)) throw failed('the body was sent, and cannot be sent again to where the redirect leads')
  if (from.origin !== to.origin) for (const name of ORIGIN_HEADERS) headers.delete(name)
  delete kept.body
  return { input: to.href, init: { ...kept, method: isChanged ? 'GET' : method, headers, ...(body !== undefined && { body }) } }
}

function fieldsOf(request: RequestLike): object {
  const fields = request as unknown as Readonly<Record<string, unknown>>
  return Object.fromEntries(REQUEST_FIELDS.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]))
}

/** `redirected` of a response, which only fetch can set, and of its clones. */
function markRedirected<Answer extends ResponseLike>(response: Answer): Answer {
  const { clone } = response as { clone?(): Answer }
  return Object.defineProperties(response, {
    redirected: { value: true, configurable: true },
    ...(clone !== undefined && { clone: { value: () => markRedirected(clone.call(response)), configurable: true } }),
  })
}

/** What fetch rejects with. */
function failed(reason: string): TypeError {
  return new TypeError('fetch failed', { cause: new Error(reason) })
}
