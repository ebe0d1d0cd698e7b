import { ANSWER, MOST_AT_ONCE, REQUESTS } from '../cluster/message.js'

/*
 * The messages of sluicegate/cluster (cluster/message.ts) as bodies of HTTP, one REQUESTS and one ANSWER a request. REQUESTS has one more item: the
 * number of the limiter that sends it, by which the object knows whose permits, reservations and leases the ids are. There are no TERMS: a limiter
 * and its object are made from the same policy in the same program, and leases carry their own times.
 */

/** Characters of a body at most. */
export const LONGEST_BODY = 2 ** 23
const LONGEST_SENDER = 64

/** What one limiter sends to an object. */
export interface ObjectRequests {
  readonly name: string
  readonly requests: readonly unknown[]
  readonly sender: string
}

export function requestBody({ name, requests, sender }: ObjectRequests): string {
  return JSON.stringify([REQUESTS, name, requests, sender])
}

/** Undefined for what is no such message. */
export function requestsIn(body: string): ObjectRequests | undefined {
  if (body.length > LONGEST_BODY) return undefined
  const message = parsed(body)
  if (!Array.isArray(message) || message[0] !== REQUESTS) return undefined
  const [, name, requests, sender] = message as readonly unknown[]
  if (typeof name !== 'string' || !Array.isArray(requests) || requests.length > MOST_AT_ONCE) return undefined
  return typeof sender === 'string' && sender.length <= LONGEST_SENDER ? { name, requests, sender } : undefined
}

export function answerBody(name: string, answers: readonly unknown[]): string {
  return JSON.stringify([ANSWER, name, answers])
}

/** The answers in a message; none in any other. */
export function answersIn(message: unknown): readonly (readonly unknown[])[] {
  if (!Array.isArray(message) || message[0] !== ANSWER || !Array.isArray(message[2])) return []
  return message[2].filter(Array.isArray)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
