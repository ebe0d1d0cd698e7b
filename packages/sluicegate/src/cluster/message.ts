import { StoreError } from '../errors.js'

/*
 * What goes over the channel between a primary process and a worker: arrays whose first item says that they are of this library, and the
 * second the name of the policy that they are about, so that others may use the same channel. Everything is plain enough for JSON.
 *
 * ASK      worker to primary   [ASK, name, requests]        all that a turn of the event loop asked for
 * ANSWER   primary to worker   [ANSWER, name, answers]      to one of these
 * TERMS    primary to worker   [TERMS, name, policy, horizonMs]   in answer to `hello`, and whenever they change; 0 where nothing is leased
 *
 * request  [id, verb, key, ...]; ids are of one worker, each used once. What a take or a booking holds goes by the id that asked for it
 *          hello; update policy; take, peek key cost; refund, penalize key tokens; charge key [tokens of each policy]; block key ms; reset key;
 *          lease key want horizonUs least part, which is 0 but of allOf; giveBack key id tokens, of a lease;
 *          book key cost mostUs; answer, cancel key id tokens; release, heartbeat key id;
 *          overrides version; setOverride key policy; deleteOverride key
 * answer   [id, ...numbers], or [id, code, message] of an error; NAME_UNKNOWN where no policy of the name is served
 *          of book whether it was charged, the microseconds until it may be spent, and then as of the others a decision
 *          (decision-numbers.ts); of lease a grant (grant-numbers.ts); of release and heartbeat 1 or 0;
 *          of overrides their version, and where that is another one an array of keys with policies; of changes to them 1 where they were made
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
