import { StoreError } from '../errors.js'

/*
 * The protocol between a primary process and a worker. Messages are arrays of plain JSON. Their first item marks them as this library's and the
 * second is the policy's name, so that others may use the same channel.
 *
 * 1. A worker creates its limiter and sends [ASK, name, [[id, 'hello']]].
 * 2. The primary answers, and after each change of the policy sends, [TERMS, name, policy, horizonMs]; 0 where nothing is leased.
 * 3. The worker decides by leases that it holds. For everything else it sends [ASK, name, requests]: all requests of one turn of the event loop.
 * 4. A request is [id, verb, key, ...]. An id is used once in its worker; permits, reservations and grants go by the id of their request.
 *      take, peek key cost; refund, penalize key tokens; charge key [tokens of each policy]; block key ms; reset key
 *      lease key want horizonUs least part (the number of a policy of allOf, else 0); giveBack key id tokens, of a lease
 *      book key cost mostUs; answer, cancel key id tokens; release, heartbeat key id
 *      overrides version; setOverride key policy; deleteOverride key; update policy
 * 5. The primary carries the requests out in order on the limiter in its memory, each as one step, and remembers by id what the worker holds.
 * 6. It answers [ANSWER, name, answers], an answer being [id, ...numbers], or [id, code, message] for an error; the code is NAME_UNKNOWN
 *    where no policy of that name is served.
 *      most verbs: a decision (decision-numbers.ts); lease: a grant (grant-numbers.ts); release, heartbeat: 1 or 0
 *      book: 1 or 0 for charged, the microseconds until the tokens may be spent, a decision
 *      overrides: their version, and pairs of key and policy if it differs; changes to them: 1 if made
 * 7. An answer after the timeout comes too late: the worker cancels a reservation, releases a permit, and leaves other tokens charged.
 * 8. When a worker exits, the primary releases its permits and cancels its future reservations. Leased tokens expire.
 * 9. Without a primary a worker decides as the option `outage` says.
 */

export const ASK = 'sluicegate:ask'
export const ANSWER = 'sluicegate:answer'
export const TERMS = 'sluicegate:terms'

/** The code of the answers to a worker whose policy the primary does not serve. */
export const NAME_UNKNOWN = 'NAME_UNKNOWN'

export type Kind = typeof ASK | typeof ANSWER | typeof TERMS
export type Message = readonly [kind: Kind, policy: string, ...content: readonly unknown[]]

/** What the limiter of an override is called on the channel: equal policies share it, and no policy has this name. */
export function overrideChannel(name: string, content: string): string {
  return `${name}\n${content}`
}

export function isKind(kind: unknown): kind is Kind {
  return kind === ASK || kind === ANSWER || kind === TERMS
}

/** Requests in one message; who sends more is not answered. */
export const MOST_AT_ONCE = 10_000

export type Request = readonly [id: number, verb: string, ...args: readonly unknown[]]

/** JSON has no infinity. */
const NEVER = -1

/** A time as it is sent. */
export function sentTime(time: number): number {
  return time === Number.POSITIVE_INFINITY ? NEVER : time
}

export function receivedTime(time: number): number {
  return time === NEVER ? Number.POSITIVE_INFINITY : time
}

/** The numbers that an answer is expected to be. */
export function numbersIn(answer: readonly unknown[], atLeast: number): readonly number[] {
  if (answer.length >= atLeast && answer.every((item) => typeof item === 'number')) return answer as readonly number[]
  throw new StoreError('OUTAGE', 'the primary gave an answer that cannot be read')
}
