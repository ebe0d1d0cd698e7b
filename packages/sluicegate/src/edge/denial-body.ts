import { type Awaitable, chained } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { retryAfterS } from '../headers/retry-after.js'
import { checkHeader } from './answer-change.js'
import type { Denial, ProblemKind } from './denial.js'
import { PROBLEM_MEDIA_TYPE, problemJson } from './problem.js'

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
