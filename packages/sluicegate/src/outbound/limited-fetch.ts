import { holdsPermits } from '../decision/permit.js'
import { PolicyError } from '../errors.js'
import { giveHold } from '../holds/hold-of.js'
import { isHold } from '../holds/metered.js'
import { afterHeld } from '../time/clock.js'
import { AbortWatch } from '../waiting/abort-watch.js'
import { copiedInit, copiedInput, copiedRequest, isRepeatable, isRequest, type RequestLike } from './copied-arguments.js'
import { followed, isFollowed } from './followed-redirects.js'
import { drop, heldResponse, type ResponseLike } from './held-response.js'
import { KeyQueues } from './key-queues.js'
import { type Answer, OutboundCall } from './outbound-call.js'
import { controlsOf, type OutboundControls, type OutboundOptions, outboundSettings } from './outbound-options.js'
import type { SentRequest } from './retry-rule.js'

const aborts = /* @__PURE__ */ new AbortWatch()

/** Any fetch: the runtime's own, undici's, or one of your own. */
export type AnyFetch = (input: never, init: never) => Promise<ResponseLike>

/** The same fetch, whose second argument may have a `priority`, which the types of Node.js lack. */
export type LimitedFetch<Fetch extends AnyFetch> = Fetch & WithPriority<Fetch> & OutboundControls
type WithPriority<Fetch> = Fetch extends (input: infer Input, init: infer Init) => infer Answer
  ? (input: Input, init: NonNullable<Init> & { readonly priority?: 'high' | 'auto' | 'low' }) => Answer
  : unknown

/** Whether a response counts for `concurrency`, or has a permit or a hold, until its body has ended. */
function holdsPlaces({ concurrency, policy, policyFor, limiter, cost }: OutboundOptions): boolean {
  const own = limiter?.policy ?? policy
  return cost !== undefined || concurrency !== undefined || policyFor !== undefined || (own !== undefined && holdsPermits(own))
}

/**
 * A fetch whose requests wait for their turn, per host or per `key`, in the order of calls. It obeys the policy or limiter it is given,
 * what the server announces (`Retry-After`, RateLimit headers of any version) and how it responds (429, 503), and retries requests that are
 * safe to retry. It resolves or rejects with what `fetch` does in the last attempt.
 *
 * @param fetch sends the requests; it is called with the arguments of the call.
 * @throws {PolicyError} on options that are unknown or wrong.
 * @example
 * const polite = limitedFetch(fetch, { policy: tokenBucket({ limit: 5, window: '1s' }), concurrency: 2 })
 * const pages = await Promise.all(urls.map((url) => polite(url)))
 */
export function limitedFetch<Fetch extends AnyFetch>(fetch: Fetch, options: OutboundOptions = {}): LimitedFetch<Fetch> {
  if (typeof fetch !== 'function')
    throw new PolicyError('OPTION_INVALID', 'fetch', fetch, 'must be the function that sends: say limitedFetch(fetch, { policy })')
  const settings = outboundSettings(options)
  const queues = new KeyQueues(settings)
  const send = fetch as unknown as (input: unknown, init: unknown) => Promise<ResponseLike>
  const isHeld = holdsPlaces(settings.given)
  const after = (ms: number, fn: () => void): (() => void) => queues.background(ms, fn)

  const limited = async (input: unknown, init?: unknown): Promise<ResponseLike> =>
    isHttp(input) && isFollowed(input, init) ? followed(input, init, sendOne) : sendOne(input, init)

  const sendOne = async (input: unknown, init?: unknown): Promise<ResponseLike> => {
    const call = fetchCall(input, init, settings.given.priority, settings.attempts > 1)
    if (call === undefined) return send(input, init)
    try {
      const attempts = new OutboundCall(queues, settings, call.request)
      for (;;) {
        const turn = await attempts.turn()
        let response: ResponseLike
        try {
          response = await unlessAborted(send(...call.next()), call.request.signal)
        } catch (error) {
          if (await attempts.failed(turn, error, call.followsRedirects ? undefined : false)) continue
          throw error
        }
        let isAgain = false
        try {
          isAgain = await attempts.answered(turn, answerOf(response, call.request.url))
        } catch (error) {
          // A hook or `key` failed: the response is not returned.
          drop(response)
          turn.end()
          throw error
        }
        if (!isAgain) {
          if (!isHeld) {
            turn.end()
            return response
          }
          const { decision } = turn
          const end = (): void => turn.end()
          if (decision === undefined || !isHold(decision)) return heldResponse(response, settings.bodyTimeoutMs, after, end)
          // What awaits the body may close the hold first, with a cost that the body said.
          const held = heldResponse(response, settings.bodyTimeoutMs, after, () => afterHeld(0, end), true)
          giveHold(held, decision.policy, decision)
          return held
        }
        drop(response)
        turn.end()
      }
    } finally {
      call.done()
    }
  }
  return Object.assign(limited, controlsOf(queues)) as unknown as LimitedFetch<Fetch>
}

/**
 * What fetch resolves or rejects with. A fetch that heeds its signal rejects by itself, with its own error; of one that does not, the response
 * comes too late and is dropped.
 */
function unlessAborted(answer: Promise<ResponseLike>, signal: AbortSignal | undefined): Promise<ResponseLike> {
  if (signal === undefined) return answer
  return new Promise((resolve, reject) => {
    let isOver = false
    const unwatch = aborts.add(signal, () => {
      afterHeld(0, () => {
        isOver = true
        reject(signal.reason)
      })
    })
    answer.then(
      (response) => {
        unwatch()
        if (isOver) drop(response)
        else resolve(response)
      },
      (error) => {
        unwatch()
        reject(error)
      },
    )
  })
}

function answerOf({ status, headers = {}, redirected, url }: ResponseLike, asked: URL): Answer {
  const isRedirected = redirected === true
  return { status, headers, isRedirected, at: isRedirected && url ? urlFrom(url, asked) : undefined }
}

/** A stand-in for a response may have only a part of its URL. */
function urlFrom(url: string, asked: URL): URL | undefined {
  try {
    return new URL(url, asked)
  } catch {
    return undefined
  }
}

/** The values of fetch's `priority`, as numbers. */
const PRIORITIES: Readonly<Record<string, number>> = { high: 1, auto: 0, low: -1 }
/** Methods for which fetch allows no body. */
const BODILESS = new Set(['GET', 'HEAD'])

/** A call of fetch: its request, and arguments for each attempt. */
interface FetchCall {
  readonly request: SentRequest
  /** Whether a response or an error may come from after a redirect. */
  readonly followsRedirects: boolean
  /** The arguments of the next attempt. */
  next(): readonly [input: unknown, init: unknown]
  /** To be called after the last attempt. */
  done(): void
}

/**
 * Reads and copies the arguments of fetch. Undefined for URLs that are not HTTP, or invalid: fetch itself handles these.
 *
 * @param priorityOf of the options; without it `init.priority` counts.
 * @param mayRepeat whether there can be a second attempt.
 */
function fetchCall(
  input: unknown,
  init: unknown,
  priorityOf: ((request: SentRequest) => number) | undefined,
  mayRepeat: boolean,
): FetchCall | undefined {
  const from = isRequest(input) ? input : undefined
  const url = urlOf(from?.url ?? input)
  if (url === undefined || !isHttp(input)) return undefined
  const given = copiedInit(init)
  const method = String(given.method ?? from?.method ?? 'GET').toUpperCase()
  const hasOwnBody = from !== undefined && given.body == null && from.body !== null && !BODILESS.has(method)
  // Not every browser exposes the body of a Request: undefined may mean that there is one.
  const isCloned = hasOwnBody && from.body !== undefined
  const followsRedirects = !['manual', 'error'].includes(String(given.redirect ?? from?.redirect))
  const signal = (given.signal === undefined ? from?.signal : given.signal) as AbortSignal | null | undefined
  const [own, beside] = from === undefined ? [copiedInput(input), init == null ? init : given] : copiedRequest(from, given)
  let headers: Headers | undefined
  const request: SentRequest = {
    url,
    method,
    header: (name) => {
      headers ??= headersOf(given.headers ?? (own as Partial<RequestLike>).headers)
      return headers.get(name) ?? undefined
    },
    isRepeatable: isCloned || (!hasOwnBody && isRepeatable(given.body)),
    signal: signal ?? undefined,
    priority: PRIORITIES[String(given.priority)] ?? 0,
  }
  const ranked = priorityOf === undefined ? request : { ...request, priority: priorityOf(request) }
  if (isCloned) return new ClonedCall(ranked, followsRedirects, { from, own: own as RequestLike, init: beside, mayRepeat })
  return { request: ranked, followsRedirects, next: () => [own, beside], done: () => undefined }
}

/** What a {@link ClonedCall} sends. */
interface Copied {
  /** The caller's request. */
  readonly from: RequestLike
  /** Its copy; the request itself where it cannot be copied. */
  readonly own: RequestLike
  readonly init: unknown
  readonly mayRepeat: boolean
}

/** The body of a Request can be read once: a copy is kept as long as another attempt may need it. */
class ClonedCall implements FetchCall {
  readonly request: SentRequest
  readonly followsRedirects: boolean
  private readonly copied: Copied
  private spare: RequestLike
  private isSent = false

  constructor(request: SentRequest, followsRedirects: boolean, copied: Copied) {
    this.request = request
    this.followsRedirects = followsRedirects
    this.copied = copied
    this.spare = copied.own
  }

  next(): readonly [input: unknown, init: unknown] {
    const { from, own, init, mayRepeat } = this.copied
    const input = this.spare
    if (mayRepeat) this.spare = input.clone()
    // Once it is sent, the caller's request is used up, as by a plain fetch.
    if (!this.isSent && from !== own) drop(from)
    this.isSent = true
    return [input, init]
  }

  done(): void {
    const { from, mayRepeat } = this.copied
    // If nothing was sent, the caller's request remains usable.
    if (this.spare !== from && (mayRepeat || !this.isSent)) drop(this.spare)
  }
}

function isHttp(input: unknown): boolean {
  const protocol = urlOf(isRequest(input) ? input.url : input)?.protocol
  return protocol === 'http:' || protocol === 'https:'
}

function urlOf(input: unknown): URL | undefined {
  try {
    // In a page relative URLs are relative to its address.
    return new URL(String(input), (globalThis as { location?: { href?: string } }).location?.href)
  } catch {
    return undefined
  }
}

/** Invalid headers are ignored here: fetch itself throws. */
function headersOf(headers: unknown): Headers {
  try {
    return new Headers((headers ?? {}) as ConstructorParameters<typeof Headers>[0])
  } catch {
    return new Headers()
  }
}
