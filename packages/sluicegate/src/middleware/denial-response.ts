import { type Awaitable, chained } from '../awaitable.js'
import type { Decision } from '../decision/decision.js'
import { PolicyError } from '../errors.js'
import type { HeaderPair } from '../headers/header.js'
import { retryAfterS } from '../headers/quota.js'
import { asGiven, checkOptions, isInteger } from '../options/option-checks.js'
import { unknownOption } from '../options/unknown-option.js'
import type { Denial, DenialKind, ProblemKind } from './denial.js'

/** The response to a request that does not pass, for an adapter to send. */
export interface DenialResponse {
  readonly passes: false
  readonly status: number
  /** With `Content-Type`. */
  readonly headers: readonly HeaderPair[]
  readonly body: string
  readonly decision: Decision
}

/** A body with its media type. */
export interface Body {
  readonly type: string
  readonly text: string
}

/**
 * The body of a denial: `problem` (RFC 9457), `text`, which is one line of text, or your own: a string is sent as text, an object as JSON, and a
 * {@link Body} as it is. Or a function of the denial that returns one of these.
 */
export type BodyOption<Request> =
  | 'problem'
  | 'text'
  | (string & {})
  | Body
  | object
  | ((denial: Denial, request: Request) => Awaitable<string | Body | object>)

/** What `onDenied` may change about the response of a denial. */
export interface AnswerChange {
  /** From 200 to 599, of a response with a body: not 204, 205 or 304. */
  readonly status?: number
  /** Set after those of the denial. */
  readonly headers?: readonly HeaderPair[]
  /** A string is sent as text, an object as JSON. */
  readonly body?: string | Body | object
}

/** The options that make responses. */
interface ResponseOptions<Request> {
  readonly body?: BodyOption<Request>
  readonly status?: number | Partial<Record<DenialKind, number>>
}

/** Makes the responses of denials. */
export class DenialResponder<Request> {
  private readonly bodyFor: BodyMaker<Request>
  private readonly statuses: Statuses

  /** @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
  constructor({ body, status }: ResponseOptions<Request>) {
    this.bodyFor = bodyMaker(body)
    this.statuses = statusesOf(status)
  }

  /**
   * @param headers of the limits, which come first.
   * @param returned what `onDenied` returned.
   * @param challenge `WWW-Authenticate` of a 401 to a request without a key.
   * @throws {PolicyError} `OPTION_INVALID` where that cannot be sent, or the body cannot
   */
  respond(
    denial: Denial,
    headers: readonly HeaderPair[],
    returned: unknown,
    request: Request,
    challenge?: string,
  ): Awaitable<DenialResponse> {
    const change = checkedChange(returned)
    const status = change.status ?? this.statuses[denial.kind] ?? (challenge === undefined ? 400 : 401)
    const asks: readonly HeaderPair[] = challenge === undefined || status !== 401 ? [] : [['WWW-Authenticate', challenge]]
    const body = change.body === undefined ? this.bodyFor(denial, status, request) : checkedBody(change.body, 'onDenied')
    return chained(body, ({ type, text }): DenialResponse => {
      const all: HeaderPair[] = [...headers, ...asks, ['Content-Type', type], ['Cache-Control', 'no-store'], ...(change.headers ?? [])]
      return { passes: false, status, headers: all, body: text, decision: denial.decision }
    })
  }
}

/**
 * A request that can never pass must not be repeated, and neither must one of a client on the deny list: hence not 429, which many clients
 * retry. An outage is not the client's fault: 503.
 */
const STATUSES = { denied: 429, impossible: 422, listed: 403, outage: 503 } as const

/** Without one for `keyless` it is 401 where the key is a credential, else 400. */
type Statuses = Readonly<Record<keyof typeof STATUSES, number> & { keyless?: number }>

const STATUSES_WITHOUT_BODY: readonly unknown[] = [204, 205, 304]

/** The status of each kind of denial. @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN` */
export function statusesOf(status: number | Partial<Record<DenialKind, number>> = {}): Statuses {
  const given = typeof status === 'number' ? { denied: status } : status
  const kinds = [...Object.keys(STATUSES), 'keyless']
  if (typeof given !== 'object' || given === null) {
    throw new PolicyError('OPTION_INVALID', 'status', given, `must be a status, or an object of statuses by ${kinds.join(', ')}`)
  }
  for (const [kind, code] of Object.entries(given)) {
    if (!kinds.includes(kind)) throw unknownOption({ option: `status.${kind}`, options: given, known: kinds })
    checkStatus('status', code)
  }
  return { ...STATUSES, ...given }
}

function checkStatus(option: string, status: unknown): void {
  if (isInteger(status, 200, 599) && !STATUSES_WITHOUT_BODY.includes(status)) return
  throw new PolicyError('OPTION_INVALID', option, status, 'must be the status of a response with a body, from 200 to 599')
}

type BodyMaker<Request> = (denial: Denial, status: number, request: Request) => Awaitable<Body>

const ONE_WORD = /^[A-Za-z-]*$/

/** @throws {PolicyError} `OPTION_INVALID` */
export function bodyMaker<Request>(option: BodyOption<Request> = 'problem'): BodyMaker<Request> {
  if (option === 'problem') return problemBody()
  if (option === 'text') return textBody
  if (isFunction<Request>(option)) return (denial, _, request) => chained(option(denial, request), (body) => checkedBody(body, 'body'))
  if (typeof option === 'string' && ONE_WORD.test(option)) {
    const mend = "is neither 'problem' nor 'text', and a single word is taken for a misspelling: for a body of one word give a function"
    throw new PolicyError('OPTION_INVALID', 'body', option, mend)
  }
  const body = checkedBody(option, 'body')
  return () => body
}

function isFunction<Request>(option: unknown): option is (denial: Denial, request: Request) => Awaitable<string | Body | object> {
  return typeof option === 'function'
}

const TYPE_PREFIX = 'https://iana.org/assignments/http-problem-types#'

const TITLES: Readonly<Record<ProblemKind, string>> = {
  'quota-exceeded': 'Quota exceeded',
  'temporary-reduced-capacity': 'Temporarily reduced capacity',
  'abnormal-usage-detected': 'Abnormal usage detected',
}

interface ProblemParts {
  readonly problem: ProblemKind
  readonly violated: readonly string[]
  readonly status: number
  readonly detail: string
}

/**
 * A body whose problem type says what happened, and whose `violated-policies` name the limits.
 *
 * Source: RFC 9457; draft-ietf-httpapi-ratelimit-headers-11, section 5.
 */
function problemBody(): (denial: Denial, status: number) => Body {
  // In a flood consecutive denials have the same text, and making it is most of their cost.
  let last: (ProblemParts & { readonly body: Body }) | undefined
  return (denial, status) => {
    const { problem, violated } = denial
    const detail = detailOf(denial)
    if (problem === 'about:blank')
      return { type: PROBLEM_MEDIA_TYPE, text: problemJson({ title: titleOf(problem, status), status, detail }) }
    if (last === undefined || !isSameProblem(last, { problem, violated, status, detail })) {
      const members = { type: TYPE_PREFIX + problem, title: TITLES[problem], status, detail, 'violated-policies': violated }
      last = { problem, violated, status, detail, body: { type: PROBLEM_MEDIA_TYPE, text: problemJson(members) } }
    }
    return last.body
  }
}

function isSameProblem(last: ProblemParts, { problem, violated, status, detail }: ProblemParts): boolean {
  if (last.detail !== detail || last.problem !== problem || last.status !== status) return false
  return last.violated.length === violated.length && last.violated.every((name, i) => name === violated[i])
}

function textBody(denial: Denial, status: number): Body {
  return { type: 'text/plain; charset=utf-8', text: `${titleOf(denial.problem, status)}. ${detailOf(denial)}\n` }
}

/** Of `about:blank` that of the status. Source: RFC 9457, section 4.2.1. */
function titleOf(problem: Denial['problem'], status: number): string {
  if (problem !== 'about:blank') return TITLES[problem]
  return { 400: 'Bad Request', 401: 'Unauthorized', 403: 'Forbidden' }[status] ?? 'No key'
}

/** What a key is read from, in the name of its reader. */
const HEADER_OF_KEY = /^(?:apiKey|header)\(([^)]+)\)/

function detailOf({ kind, decision, missing = '' }: Denial): string {
  switch (kind) {
    case 'impossible':
      return 'This request costs more than its limit ever allows.'
    case 'listed':
      return 'Requests of this client are not accepted.'
    case 'keyless': {
      if (missing === 'policy') return 'There is no limit under which this request could be counted.'
      const header = HEADER_OF_KEY.exec(missing)?.[1]
      return header === undefined ? 'This request does not say whose it is.' : `This request has no valid header ${header}.`
    }
    default: {
      const seconds = retryAfterS(decision.retryAfterMs)
      return `Try again in ${seconds} ${seconds === '1' ? 'second' : 'seconds'}.`
    }
  }
}

function checkedBody(body: string | Body | object, option: string): Body {
  if (typeof body === 'string') return { type: 'text/plain; charset=utf-8', text: body }
  if (typeof body !== 'object' || body === null) {
    throw new PolicyError('OPTION_INVALID', option, body, 'must be a string, an object for JSON, or { type, text }')
  }
  if (!isBody(body)) return { type: 'application/json', text: jsonOf(body, option) }
  checkHeader(option, ['Content-Type', body.type])
  return body
}

function jsonOf(body: object, option: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(body)
  } catch (cause) {
    throw new PolicyError('OPTION_INVALID', option, body, 'must be an object that can be made into JSON', { cause })
  }
  if (text !== undefined) return text
  throw new PolicyError('OPTION_INVALID', option, body, 'must be an object that can be made into JSON')
}

function isBody(body: object): body is Body {
  const { type, text } = body as Partial<Body>
  return typeof type === 'string' && typeof text === 'string'
}

const CHANGES = ['status', 'headers', 'body']
const CHANGE_EXAMPLE = "{ status: 429, headers: [['X-Reason', 'quota']], body: 'later' }"

/**
 * What `onDenied` returned, checked before any of it is sent: a short arrow function returns the value of its last call, which may be any object,
 * and headers may be made of what clients sent.
 *
 * @throws {PolicyError} `OPTION_INVALID`; `OPTION_UNKNOWN` for a plain object with other names
 */
function checkedChange(returned: unknown): AnswerChange {
  // A number or undefined changes nothing.
  if (typeof returned !== 'object' || returned === null) return asGiven<AnswerChange>({}, CHANGES)
  if (isResponse(returned)) {
    throw new PolicyError('OPTION_INVALID', 'onDenied', returned, 'must return { status, headers, body }, and not a Response')
  }
  const change: AnswerChange = isPlain(returned)
    ? checkOptions(returned, CHANGES, CHANGE_EXAMPLE, 'the answer that onDenied returns')
    : asGiven(returned, CHANGES)
  const { status, headers } = change
  if (status !== undefined) checkStatus('onDenied', status)
  if (headers === undefined) return change
  if (!Array.isArray(headers)) {
    throw new PolicyError('OPTION_INVALID', 'onDenied', headers, "must return headers as an array of pairs such as ['X-Reason', 'quota']")
  }
  for (const header of headers) checkHeader('onDenied', header)
  return change
}

/** A Response of any implementation. */
function isResponse(returned: object): boolean {
  return Object.prototype.toString.call(returned) === '[object Response]'
}

/** An instance of a class, such as a logger that the last call returned, is not a misspelt answer. */
function isPlain(returned: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(returned)
  return prototype === Object.prototype || prototype === null
}

/** Source: RFC 9110, sections 5.1 and 5.5. */
const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** The server writes these by the body that it sends. Source: RFC 9112, section 6. */
const FRAMING_HEADERS: readonly string[] = ['content-length', 'trailer', 'transfer-encoding']

function checkHeader(option: string, header: unknown): void {
  const [name, value] = Array.isArray(header) ? header : []
  if (FRAMING_HEADERS.includes(String(name).toLowerCase())) {
    throw new PolicyError('OPTION_INVALID', option, header, `must not contain ${name}, which the server sets for the body`)
  }
  if (typeof name === 'string' && typeof value === 'string' && HEADER_NAME.test(name) && HEADER_VALUE.test(value)) return
  throw new PolicyError('OPTION_INVALID', option, header, 'must contain headers of a name and a value, both text that HTTP allows')
}

/** The media type of a problem. Source: RFC 9457, section 3. */
const PROBLEM_MEDIA_TYPE = 'application/problem+json'

/** The members of a problem; other names are extension members. */
export interface ProblemMembers {
  /** A URI that identifies the kind of problem; default `about:blank`, whose meaning is that of the status. */
  readonly type?: string
  readonly title: string | undefined
  readonly status: number
  readonly detail?: string
  readonly [extension: string]: unknown
}

/**
 * A problem as the body of a response of type `application/problem+json`.
 *
 * Source: RFC 9457, sections 3.1 and 4.2.1.
 *
 * @example problemJson({ title: 'Not Found', status: 404, code: 'PATH_UNKNOWN' })
 */
export function problemJson({ type = 'about:blank', ...members }: ProblemMembers): string {
  return JSON.stringify({ type, ...members })
}
