import { ANSWER, ASK, MOST_AT_ONCE } from '../cluster/message.js'

/*
 * The messages of sluicegate/cluster (cluster/message.ts) as bodies of HTTP, one ASK and one ANSWER a request. ASK has one more item: the
 * number of the limiter that asks, by which the object knows whose permits, reservations and leases the ids are. There are no TERMS: a limiter
 * and its object are made from the same policy in the same program, and leases carry their own times.
 */

/** Characters of a body at most. */
export const LONGEST_BODY = 2 ** 23
const LONGEST_ASKER = 64

/** What an object is asked. */
export interface Asked {
  readonly name: string
  readonly requests: readonly unknown[]
  readonly asker: string
}

export function askBody({ name, requests, asker }: Asked): string {
  return JSON.stringify([ASK, name, requests, asker])
}

/** Undefined for what is no such message. */
export function askedIn(body: string): Asked | undefined {
  if (body.length > LONGEST_BODY) return undefined
  const message = parsed(body)
  if (!Array.isArray(message) || message[0] !== ASK) return undefined
  const [, name, requests, asker] = message as readonly unknown[]
  if (typeof name !== 'string' || !Array.isArray(requests) || requests.length > MOST_AT_ONCE) return undefined
  return typeof asker === 'string' && asker.length <= LONGEST_ASKER ? { name, requests, asker } : undefined
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
