import { combined, type Decision } from '../decision/decision.js'
import { PolicyError, StoreError } from '../errors.js'
import type { Key } from '../key.js'
import type { Grant } from '../lease/grant.js'
import { checkInteger } from '../options/option-checks.js'
import { isRate, type Policy, policiesOf } from '../policy/policy.js'
import { type Answer, type HoldOperation, isGranted, type LeaseRequest, newOperationId, type Operation } from '../shared/backend.js'
import type { MemoryLease } from './memory-lease.js'

/*
 * The protocol between an owner of policies (a primary process, a Durable Object) and those who use them. Messages are arrays of plain JSON:
 * [kind, name of the policy, version, ...content]. The kind marks them as this library's, so that others may use the same channel.
 *
 * 1. A worker creates its limiter and sends [REQUESTS, name, VERSION, [[id, 'hello']]].
 * 2. The primary answers, and after each change of them sends, [TERMS, name, VERSION, policy, horizonMs, workers]: the policy, 0 where nothing is
 *    leased, and how many workers it serves, which share the policy when it is gone.
 * 3. The worker decides by leases that it holds. For everything else it sends [REQUESTS, name, VERSION, requests]: all requests of one turn of
 *    the event loop.
 * 4. A request is an operation of the port (shared/backend.ts): [id, verb, key, ...fields], in the order of {@link FIELDS}. An id is used once in
 *    its worker; charges and permits go by the id of the request that made them. Beside these there are
 *      overrides version; setOverride key policy; deleteOverride key; update policy;
 *      planned key plans verb ...fields: an operation whose keys have plans, a policy for each level or null. Without it they have none.
 * 5. The owner carries the requests out in order on the limiter in its memory, each as one step, and remembers by id what the worker holds.
 * 6. It answers [ANSWER, name, VERSION, answers], an answer being [id, ...numbers], or [id, code, message] for an error; the code is NAME_UNKNOWN
 *    where no policy of that name is served, and VERSION_UNKNOWN for requests of another version.
 *      most verbs: a decision; lease: a grant; release, heartbeat: 1 or 0
 *      hold: 1 or 0 for done, what is held and not granted, what is granted, for how many microseconds, debt, and the end, by which the next step
 *      names it, and how many opened; a decision
 *      reserve: 1 or 0 for charged, the microseconds until the tokens may be spent, a decision
 *      overrides: their version, and pairs of key and policy if it differs; changes to them: 1 if made
 * 7. An answer after the timeout comes too late: the worker gives a reservation back, releases a permit, and leaves other tokens charged.
 * 8. When a worker exits, the primary releases its permits and cancels its future reservations. Leased tokens expire.
 * 9. Without a primary a worker decides as the option `outage` says.
 *
 * What stays in every version: the first three items of a message, that a request begins with its id, and the form of an error. So during a
 * rolling change each side knows the other for another version: nothing of it is carried out, and the worker decides as in an outage.
 */

/** Grows with every change of what is sent. */
export const VERSION = 1

export const REQUESTS = 'sluicegate:ask'
export const ANSWER = 'sluicegate:answer'
export const TERMS = 'sluicegate:terms'

/** The code of the answers to a worker whose policy the owner does not serve. */
export const NAME_UNKNOWN = 'NAME_UNKNOWN'
/** The code of the answers to requests of another version. */
export const VERSION_UNKNOWN = 'VERSION_UNKNOWN'

export type Kind = typeof REQUESTS | typeof ANSWER | typeof TERMS
export type Message = readonly [kind: Kind, policy: string, version: number, ...content: readonly unknown[]]

/** What the limiter of an override is called on the channel: equal policies share it, and no policy has this name. */
export function overrideChannel(name: string, content: string): string {
  return `${name}\n${content}`
}

export function isKind(kind: unknown): kind is Kind {
  return kind === REQUESTS || kind === ANSWER || kind === TERMS
}

/** What is said to requests of another version, as an answer to each. */
export function refusalOfVersion(requests: unknown, version: unknown): readonly unknown[] {
  return refusalOf(
    requests,
    VERSION_UNKNOWN,
    `this version of sluicegate speaks version ${VERSION} of the protocol, and not ${String(version)}`,
  )
}

/** The same error as an answer to each request; none to what are no requests. */
export function refusalOf(requests: unknown, code: string, why: string): readonly unknown[] {
  if (!Array.isArray(requests) || requests.length > MOST_AT_ONCE) return []
  return requests.filter(Array.isArray).map(([id]) => [id, code, why])
}

/** Requests in one message; a message with more is not answered. */
export const MOST_AT_ONCE = 10_000

export type Request = readonly [id: number, verb: string, ...args: readonly unknown[]]

/** What is sent of each operation after its verb and key. Of a charge it is the id. */
const FIELDS = {
  take: ['cost'],
  peek: ['cost'],
  refund: ['tokens'],
  penalize: ['tokens'],
  charge: ['tokens'],
  block: ['us'],
  reset: [],
  reserve: ['cost', 'maxWaitUs', 'isWait'],
  redeem: ['charge'],
  giveBack: ['charge', 'tokens', 'cost'],
  release: ['id'],
  heartbeat: ['id'],
  hold: ['spent', 'hold', 'want', 'least', 'ttlUs', 'isDebt', 'before', 'count'],
  lease: ['want', 'least', 'part'],
} as const satisfies Record<SentOperation['verb'], readonly string[]>

/** What an owner is asked. */
export type SentOperation = Operation | ({ readonly verb: 'lease' } & LeaseRequest)

/** An operation as it was received: nothing of it is checked. */
export type ReceivedOperation = { readonly verb: keyof typeof FIELDS; readonly key: unknown } & Readonly<
  Partial<Record<(typeof FIELDS)[keyof typeof FIELDS][number], unknown>>
>

/** The request for an operation. Its id is that of the operation, where it may be named later. */
export function requestOf(operation: SentOperation): Request {
  const { verb, key } = operation
  const isNamed = verb === 'take' || verb === 'reserve'
  const values: Readonly<Record<string, unknown>> =
    'charge' in operation ? { ...operation, ...sentCharge(operation.charge) } : verb === 'hold' ? sentHold(operation) : { ...operation }
  return [isNamed ? operation.id : newOperationId(), verb, key, ...FIELDS[verb].map((field) => values[field])]
}

function sentCharge(charge: Extract<Operation, { charge: unknown }>['charge']): { readonly charge: number; readonly cost: number } {
  return { charge: isGranted(charge) ? charge.grantId : charge.id, cost: charge.cost }
}

/** A record is for callers that come to any process: an owner has its own. */
function sentHold({ before, hold, count, ...operation }: HoldOperation): Readonly<Record<string, unknown>> {
  const stood = before && [before.state, before.rest, before.granted]
  return { ...operation, hold: hold === 'rest' ? REST : hold, before: stood ?? [], count: count ?? 0 }
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function holdIn(key: Key, { spent, hold, want, least, ttlUs, isDebt, before, count }: ReceivedOperation): HoldOperation {
  const numbers = { spent, hold, want, least, ttlUs, count }
  for (const [option, value] of Object.entries(numbers)) checkInteger(option, value, option === 'hold' ? REST : 0)
  checkInteger('ttlUs', ttlUs, 1)
  if (!Array.isArray(before)) throw new PolicyError('OPTION_INVALID', 'before', before, 'must be an array')
  for (const value of before) checkInteger('before', value, 0)
  const [state, rest = 0, granted = 0] = before as readonly number[]
  return {
    verb: 'hold',
    key,
    id: 0,
    ...(numbers as Readonly<Record<keyof typeof numbers, number>>),
    hold: hold === REST ? 'rest' : (hold as number),
    count: count === 0 ? undefined : (count as number),
    ttlUs: Math.min(ttlUs, LONGEST_HOLD_US),
    isDebt: isDebt === true,
    ...(state !== undefined && { before: { state, rest, granted, forUs: 0, over: 0 } }),
  }
}

/** Numbers before the decision. */
const HELD_NUMBERS = 7

/** Encodes the answer to a step of a hold. */
export function numbersOfHold({ done, decision, hold }: Answer): readonly number[] {
  const { rest = 0, granted = 0, forUs = 0, over = 0, state = 0, count = 1 } = hold ?? {}
  return [done ? 1 : 0, rest, granted, forUs, over, state as number, count, ...(decision === undefined ? [] : numbersOfDecision(decision))]
}

export function heldIn(answer: readonly unknown[], policy: Policy): Answer {
  const [done, rest = 0, granted = 0, forUs = 0, over = 0, state = 0, count] = numbersIn(answer, HELD_NUMBERS)
  const decision = decisionIn(answer.slice(HELD_NUMBERS), policy)
  return { done: done === 1, decision, ...(done === 1 && { hold: { rest, granted, forUs, over, state, count } }) }
}

/** The same request, under plans of its keys. */
export function plannedRequest([id, verb, key, ...fields]: Request, plans: readonly (Policy | null)[]): Request {
  return [id, PLANNED, key, plans, verb, ...fields]
}

/** A request without its plans, and these. */
export function unplanned(request: readonly unknown[]): readonly [request: readonly unknown[], plans: unknown] {
  const [id, verb, key, plans, ...rest] = request
  return verb === PLANNED ? [[id, rest[0], key, ...rest.slice(1)], plans] : [request, undefined]
}

/** Undefined for another verb. */
export function operationIn([, verb, key, ...values]: readonly unknown[]): ReceivedOperation | undefined {
  const fields = Object.hasOwn(FIELDS, String(verb)) ? FIELDS[verb as keyof typeof FIELDS] : undefined
  return fields && { verb: verb as keyof typeof FIELDS, key, ...Object.fromEntries(fields.map((field, i) => [field, values[i]])) }
}

const PLANNED = 'planned'
/** What is left of a hold, as it is sent. */
const REST = -1
/** Of the longest time to live. */
const LONGEST_HOLD_US = 130_000_000_000

/** JSON has no infinity. */
const NEVER = -1

/** A time as it is sent. */
function sentTime(time: number): number {
  return time === Number.POSITIVE_INFINITY ? NEVER : time
}

function receivedTime(time: number): number {
  return time === NEVER ? Number.POSITIVE_INFINITY : time
}

/** The numbers that an answer is expected to be. */
export function numbersIn(answer: readonly unknown[], atLeast: number): readonly number[] {
  if (answer.length >= atLeast && answer.every((item) => typeof item === 'number')) return answer as readonly number[]
  throw new StoreError('OUTAGE', 'the owner gave an answer that cannot be read')
}

/** Numbers for each policy: allowed, limit, remaining, retry-after and reset-after in milliseconds, and tokens spent beyond the burst or 0. */
const NUMBERS = 6
const [RETRY_AFTER, RESET_AFTER] = [3, 4]

/** Encodes a decision as numbers; with `allOf` those of its parts, from which the whole is combined again. */
export function numbersOfDecision({ parts, ...whole }: Decision): number[] {
  return (parts ?? [whole]).flatMap(({ allowed, limit, remaining, retryAfterMs, resetAfterMs, spent = 0 }) => [
    allowed ? 1 : 0,
    limit,
    remaining,
    sentTime(retryAfterMs),
    resetAfterMs,
    spent,
  ])
}

/** When the state that an answer's decision describes is a full key's again, in milliseconds; undefined for an error. */
export function fullAfterMs(answer: readonly unknown[]): number | undefined {
  if (answer.length < NUMBERS) return undefined
  let afterMs = 0
  for (let i = 0; i < answer.length; i += NUMBERS) {
    afterMs = Math.max(afterMs, answer[i + RETRY_AFTER] as number, answer[i + RESET_AFTER] as number)
  }
  return afterMs
}

/** Decodes the decision that the owner made under `policy`. */
export function decisionIn(answer: readonly unknown[], policy: Policy): Decision {
  const policies = policiesOf(policy)
  const numbers = numbersIn(answer, NUMBERS * policies.length)
  const parts = policies.map(({ name }, i): Decision => {
    const [allowed, limit = 0, remaining = 0, retryAfterMs = 0, resetAfterMs = 0, spent = 0] = numbers.slice(NUMBERS * i, NUMBERS * (i + 1))
    return {
      allowed: allowed === 1,
      limit,
      remaining,
      retryAfterMs: receivedTime(retryAfterMs),
      resetAfterMs,
      policy: name,
      source: 'store',
      ...(spent > 0 && { spent }),
    }
  })
  return policy.policies === undefined ? (parts[0] as Decision) : combined(parts)
}

/** Encodes a lease: its tokens and their end, until free, banned, remaining, until full. */
export function numbersOfLease({ tokens, endUs, untilFreeUs, blockedUs, remaining, untilNewUs }: MemoryLease): number[] {
  return [tokens, endUs, sentTime(untilFreeUs), blockedUs, remaining, untilNewUs]
}

/** Decodes a grant, which request `id` asked for with at least `least` tokens. */
export function grantIn(answer: readonly unknown[], policy: Policy, least: number, id?: number): Grant {
  const [tokens = 0, endUs = 0, freeUs = 0, blockedUs = 0, remaining = 0, untilNewUs = 0] = numbersIn(answer, 6)
  const untilFreeUs = receivedTime(freeUs)
  return {
    tokens,
    endUs: () => endUs,
    flowsBack: isRate(policy),
    id,
    untilFreeUs,
    untilFreeFor: untilFreeIn(policy, untilFreeUs, least),
    blockedUs,
    remaining,
    untilNewUs,
  }
}

/** A rate gives one token after another, a fixed window all at once. For others only the owner knows: more tokens take as long, or longer. */
function untilFreeIn(policy: Policy, untilFreeUs: number, least: number): Grant['untilFreeFor'] {
  const { limit, windowMs } = policy
  const isOfRate = isRate(policy)
  return (tokens) => {
    if (tokens === least || (!isOfRate && tokens > least && untilFreeUs > 0)) return untilFreeUs
    return isOfRate ? Math.max(0, Math.ceil(untilFreeUs + ((tokens - least) * windowMs * 1000) / limit)) : undefined
  }
}
