import { StoreError } from '../errors.js'
import { ANSWER, type Message, MOST_AT_ONCE, REQUESTS, VERSION } from '../owner/message.js'

/*
 * The messages of sluicegate/cluster (owner/message.ts) as bodies of HTTP, one REQUESTS and one ANSWER a request. REQUESTS has one more item: the
 * number of the limiter that sends it, by which the object knows whose permits, reservations and leases the ids are. There are no TERMS: a limiter
 * and its object are made from the same policy in the same program, and leases carry their own times.
 */

/** Characters of a body at most. */
export const LONGEST_BODY = 2 ** 23
const LONGEST_SENDER = 64

/** What one limiter sends to an object. */
export interface SentRequests {
  readonly name: string
  /** Of the protocol, as the limiter speaks it. */
  readonly version: unknown
  readonly requests: readonly unknown[]
  readonly sender: string
}

export function requestBody({ name, requests, sender }: Omit<SentRequests, 'version'>): string {
  const message: Message = [REQUESTS, name, VERSION, requests, sender]
  return JSON.stringify(message)
}

/** Undefined for what is no such message. */
export function requestsIn(body: string): SentRequests | undefined {
  if (body.length > LONGEST_BODY) return undefined
  const message = parsed(body)
  if (!Array.isArray(message) || message[0] !== REQUESTS) return undefined
  const [, name, version, requests, sender] = message as readonly unknown[]
  if (typeof name !== 'string' || !Array.isArray(requests) || requests.length > MOST_AT_ONCE) return undefined
  return typeof sender === 'string' && sender.length <= LONGEST_SENDER ? { name, version, requests, sender } : undefined
}

export function answerBody(name: string, answers: readonly unknown[]): string {
  const message: Message = [ANSWER, name, VERSION, answers]
  return JSON.stringify(message)
}

/**
 * The answers in a message; none in any other.
 *
 * @throws {StoreError} `OUTAGE` for one of another version.
 */
export function answersIn(message: unknown): readonly unknown[] {
  if (!Array.isArray(message) || message[0] !== ANSWER) return []
  const [, , version, answers] = message
  // What an object says to another version has the form of an error in every version.
  if (version !== VERSION && !Array.isArray(answers)) throw new StoreError('OUTAGE', `the object speaks version ${version} of the protocol`)
  return Array.isArray(answers) ? answers : []
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
