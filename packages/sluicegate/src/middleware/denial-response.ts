import { type Awaitable, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { retryAfterS } from '../headers/quota.js'
import { checkOptions, unknownOption } from '../options/option-checks.js'
import type { Denial, DenialKind, ProblemKind } from './denial.js'
import type { AnswerChange, GatekeeperOptions } from './middleware-options.js'
import { PROBLEM_MEDIA_TYPE, problemJson } from './problem.js'

/**
 * What can never pass is no reason to come back later, and a client that is not wanted at all none either: hence not 429, which many try
 * again. An outage is no fault of the client.
 */
const STATUS: Readonly<Record<DenialKind, number>> = { denied: 429, impossible: 422, listed: 403, outage: 503 }

/** Those of responses without a body. */
const WITHOUT_BODY: readonly unknown[] = [204, 205, 304]

/** The status of each kind of denial. @throws {PolicyError} `OPTION_INVALID` */
export function statusesOf(status: GatekeeperOptions<never>['status'] = {}): Readonly<Record<DenialKind, number>> {
  const given = typeof status === 'number' ? { denied: status } : status
  if (typeof given !== 'object' || given === null) {
    throw new PolicyError('OPTION_INVALID', 'status', given, `must be a status, or one for some of ${Object.keys(STATUS).join(', ')}`)
  }
  for (const [kind, code] of Object.entries(given)) {
    if (!Object.hasOwn(STATUS, kind)) throw unknownOption({ option: `status.${kind}`, value: code, known: Object.keys(STATUS) })
    checkStatus('status', code)
  }
  return { ...STATUS, ...given }
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkStatus(option: string, status: unknown): void {
  if (Number.isInteger(status) && Number(status) >= 200 && Number(status) <= 599 && !WITHOUT_BODY.includes(status)) return
  throw new PolicyError('OPTION_INVALID', option, status, 'must be the status of a response with a body, from 200 to 599')
}

/** A body with its media type. */
export interface Body {
  readonly type: string
  readonly text: string
}

/**
 * The body of an answer: `problem` (RFC 9457), `text`, a line of it, or one of your own: a string is sent as text, an object as JSON, and a
 * {@link Body} as it says; or a function of the denial that gives one of these.
 */
export type BodyOption<Request> =
  | 'problem'
  | 'text'
  | (string & {})
  | Body
  | object
  | ((denial: Denial, request: Request) => Awaitable<string | Body | object>)

/** Makes the body of a denial that is answered with `status`. */
export type BodyMaker<Request> = (denial: Denial, status: number, request: Request) => Awaitable<Body>

/** What the text of a problem is made of. */
interface Telling {
  readonly problem: ProblemKind
  readonly violated: readonly string[]
  readonly status: number
  readonly detail: string
}

/** The same, with the body that it came to. */
interface Told extends Telling {
  readonly body: Body
}

const TYPE_PREFIX = 'https://iana.org/assignments/http-problem-types#'

const TITLES: Readonly<Record<ProblemKind, string>> = {
  'quota-exceeded': 'Quota exceeded',
  'temporary-reduced-capacity': 'Temporarily reduced capacity',
  'abnormal-usage-detected': 'Abnormal usage detected',
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function bodyMaker<Request>(option: BodyOption<Request> = 'problem'): BodyMaker<Request> {
  if (option === 'problem') return problemBody()
  if (option === 'text') return textBody
  if (isMaker<Request>(option)) return (denial, _, request) => chained(option(denial, request), (made) => bodyOf(made, 'body'))
  if (typeof option === 'string' && ONE_WORD.test(option)) {
    const mend = "is neither 'problem' nor 'text', and one word is taken for a misspelling: for a text of one word give a function"
    throw new PolicyError('OPTION_INVALID', 'body', option, mend)
  }
  const body = bodyOf(option, 'body')
  return () => body
}

const ONE_WORD = /^[A-Za-z-]*$/

function isMaker<Request>(option: unknown): option is (denial: Denial, request: Request) => Awaitable<string | Body | object> {
  return typeof option === 'function'
}

/**
 * The problem type says what happened, `violated-policies` where.
 *
 * Source: RFC 9457; draft-ietf-httpapi-ratelimit-headers-11, section 5.
 */
function problemBody(): (denial: Denial, status: number) => Body {
  // In a flood one denial reads like the next, and their text is most of what they cost.
  let last: Told | undefined
  return (denial, status) => {
    const { problem, violated } = denial
    const detail = detailOf(denial)
    if (last === undefined || !isSame(last, { problem, violated, status, detail })) {
      const members = { type: TYPE_PREFIX + problem, title: TITLES[problem], status, detail, 'violated-policies': violated }
      last = { problem, violated, status, detail, body: { type: PROBLEM_MEDIA_TYPE, text: problemJson(members) } }
    }
    return last.body
  }
}

function isSame(told: Told, { problem, violated, status, detail }: Telling): boolean {
  if (told.detail !== detail || told.problem !== problem || told.status !== status) return false
  return told.violated.length === violated.length && told.violated.every((name, i) => name === violated[i])
}

function textBody(denial: Denial): Body {
  return { type: 'text/plain; charset=utf-8', text: `${TITLES[denial.problem]}. ${detailOf(denial)}\n` }
}

function detailOf({ kind, decision }: Denial): string {
  switch (kind) {
    case 'impossible':
      return 'This request costs more than its limit ever allows.'
    case 'listed':
      return 'Requests of this client are not accepted.'
    default: {
      const seconds = retryAfterS(decision.retryAfterMs)
      return `Try again in ${seconds} ${seconds === '1' ? 'second' : 'seconds'}.`
    }
  }
}

/** What a function said. @throws {PolicyError} `OPTION_INVALID` */
export function bodyOf(made: string | Body | object, option: string): Body {
  if (typeof made === 'string') return { type: 'text/plain; charset=utf-8', text: made }
  if (typeof made !== 'object' || made === null) {
    throw new PolicyError('OPTION_INVALID', option, made, 'must give a string, an object for JSON, or { type, text }')
  }
  if (!isBody(made)) return { type: 'application/json', text: jsonOf(made, option) }
  checkHeader(option, ['Content-Type', made.type])
  return made
}

function jsonOf(made: object, option: string): string {
  let text: string | undefined
  try {
    text = JSON.stringify(made)
  } catch (cause) {
    throw new PolicyError('OPTION_INVALID', option, made, 'must give an object that can be made into JSON', { cause })
  }
  if (text !== undefined) return text
  throw new PolicyError('OPTION_INVALID', option, made, 'must give an object that can be made into JSON')
}

function isBody(made: object): made is Body {
  const { type, text } = made as Partial<Body>
  return typeof type === 'string' && typeof text === 'string'
}

const CHANGES = ['status', 'headers', 'body']

/** Source: RFC 9110, sections 5.1 and 5.5. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Where a body ends is for its server to say. Source: RFC 9112, section 6. */
const FRAMING: readonly string[] = ['content-length', 'trailer', 'transfer-encoding']

/**
 * What `onDenied` returned, looked at before anything of it is written: a short arrow function returns whatever it did last, the response to
 * another request perhaps, and headers may be made of what clients sent.
 *
 * @throws {PolicyError} `OPTION_INVALID`; `OPTION_UNKNOWN` where it is an object of other names
 */
export function checkedChange(returned: unknown): AnswerChange {
  // A number, or nothing, says nothing about the answer.
  if (typeof returned !== 'object' || returned === null) return {}
  if (isResponse(returned)) {
    throw new PolicyError('OPTION_INVALID', 'onDenied', returned, 'must give { status, headers, body }, and no Response')
  }
  if (isPlain(returned))
    checkOptions(returned, CHANGES, "{ status: 429, headers: [['X-Reason', 'quota']], body: 'later' }", 'the answer that onDenied returns')
  const { status, headers } = returned as AnswerChange
  if (status !== undefined) checkStatus('onDenied', status)
  if (headers === undefined) return returned
  if (!Array.isArray(headers)) {
    throw new PolicyError('OPTION_INVALID', 'onDenied', headers, "must give headers as an array of pairs such as ['X-Reason', 'quota']")
  }
  for (const header of headers) checkHeader('onDenied', header)
  return returned
}

/** Of whatever make. */
function isResponse(returned: object): boolean {
  return Object.prototype.toString.call(returned) === '[object Response]'
}

/** Other objects have names of their own, and are no answer that was misspelt: a logger, say, which the last call returned. */
function isPlain(returned: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(returned)
  return prototype === Object.prototype || prototype === null
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkHeader(option: string, header: unknown): void {
  const [name, value] = Array.isArray(header) ? header : []
  if (FRAMING.includes(String(name).toLowerCase())) {
    throw new PolicyError('OPTION_INVALID', option, header, `cannot give ${name}, which the server tells of the body`)
  }
  if (typeof name === 'string' && typeof value === 'string' && NAME.test(name) && VALUE.test(value)) return
  throw new PolicyError('OPTION_INVALID', option, header, 'must give headers of a name and a value, both text that HTTP takes')
}
