import { combined, type Decision } from '../decision/decision.js'
import { StoreError } from '../errors.js'
import type { Grant } from '../lease/grant.js'
import type { Policy } from '../policy/policy.js'
import { flowsBack, type LeaseRun, type MemoryLease } from './memory-lease.js'

/*
 * The protocol between a primary process and a worker. Messages are arrays of plain JSON. Their first item marks them as this library's and the
 * second is the policy's name, so that others may use the same channel.
 *
 * 1. A worker creates its limiter and sends [REQUESTS, name, [[id, 'hello']]].
 * 2. The primary answers, and after each change of them sends, [TERMS, name, policy, horizonMs, workers]: the policy, 0 where nothing is leased,
 *    and how many workers it serves, which share the policy when it is gone.
 * 3. The worker decides by leases that it holds. For everything else it sends [REQUESTS, name, requests]: all requests of one turn of the event loop.
 * 4. A request is [id, verb, key, ...]. An id is used once in its worker; permits, reservations and grants go by the id of their request.
 *      take, peek key cost; refund, penalize key tokens; charge key [tokens of each policy]; block key ms; reset key
 *      lease key want horizonUs least part (the number of a policy of allOf, else 0)
 *      reserve key cost mostUs; redeem key id; giveBack key id tokens cost, of a lease: tokens of cost that a take has spent; release, heartbeat key id
 *      overrides version; setOverride key policy; deleteOverride key; update policy
 * 5. The primary carries the requests out in order on the limiter in its memory, each as one step, and remembers by id what the worker holds.
 * 6. It answers [ANSWER, name, answers], an answer being [id, ...numbers], or [id, code, message] for an error; the code is NAME_UNKNOWN
 *    where no policy of that name is served.
 *      most verbs: a decision; lease: a grant; release, heartbeat: 1 or 0
 *      reserve: 1 or 0 for charged, the microseconds until the tokens may be spent, a decision
 *      overrides: their version, and pairs of key and policy if it differs; changes to them: 1 if made
 * 7. An answer after the timeout comes too late: the worker gives a reservation back, releases a permit, and leaves other tokens charged.
 * 8. When a worker exits, the primary releases its permits and cancels its future reservations. Leased tokens expire.
 * 9. Without a primary a worker decides as the option `outage` says.
 */

export const REQUESTS = 'sluicegate:ask'
export const ANSWER = 'sluicegate:answer'
export const TERMS = 'sluicegate:terms'

/** The code of the answers to a worker whose policy the primary does not serve. */
export const NAME_UNKNOWN = 'NAME_UNKNOWN'

export type Kind = typeof REQUESTS | typeof ANSWER | typeof TERMS
export type Message = readonly [kind: Kind, policy: string, ...content: readonly unknown[]]

/** What the limiter of an override is called on the channel: equal policies share it, and no policy has this name. */
export function overrideChannel(name: string, content: string): string {
  return `${name}\n${content}`
}

export function isKind(kind: unknown): kind is Kind {
  return kind === REQUESTS || kind === ANSWER || kind === TERMS
}

/** Requests in one message; a message with more is not answered. */
export const MOST_AT_ONCE = 10_000

export type Request = readonly [id: number, verb: string, ...args: readonly unknown[]]

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
  throw new StoreError('OUTAGE', 'the primary gave an answer that cannot be read')
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

/** Decodes the decision that the primary made under `policy`. */
export function decisionIn(answer: readonly unknown[], policy: Policy): Decision {
  const policies = policy.policies ?? [policy]
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

/** Numbers before the runs, and for each run. */
const HEAD = 4
const RUN = 3

/** Encodes a lease: until free, banned, remaining, until full; then for each run its tokens, beginning and end. */
export function numbersOfLease({ untilFreeUs, blockedUs, remaining, untilNewUs, runs }: MemoryLease): number[] {
  return [
    sentTime(untilFreeUs),
    blockedUs,
    remaining,
    untilNewUs,
    ...runs.flatMap(({ tokens, beginUs, endUs }) => [tokens, beginUs, endUs]),
  ]
}

/** Decodes a grant, which request `id` asked for with at least `least` tokens. */
export function grantIn(answer: readonly unknown[], policy: Policy, least: number, id?: number): Grant {
  const [freeUs = 0, blockedUs = 0, remaining = 0, untilNewUs = 0, ...numbers] = numbersIn(answer, HEAD)
  const untilFreeUs = receivedTime(freeUs)
  const runs: LeaseRun[] = []
  for (let at = 0; at + RUN <= numbers.length; at += RUN) {
    const [tokens = 0, beginUs = 0, endUs = 0] = numbers.slice(at, at + RUN)
    runs.push({ tokens, beginUs, endUs })
  }
  const ready = countOf(runs.filter(({ beginUs }) => beginUs === 0))
  const later = countOf(runs) - ready
  const runOf = runFinder(runs)
  return {
    availableNow: ready,
    availableLater: later,
    flowsBack: flowsBack(policy),
    id,
    beginUs: (token) => runOf(token).beginUs,
    endUs: (token) => runOf(token).endUs,
    untilFreeUs,
    untilFreeFor: untilFreeIn(policy, untilFreeUs, least),
    blockedUs,
    remaining,
    untilNewUs,
  }
}

/** A rate gives one token after another, a fixed window all at once. For others only the primary knows: more tokens take as long, or longer. */
function untilFreeIn(policy: Policy, untilFreeUs: number, least: number): Grant['untilFreeFor'] {
  const { limit, windowMs } = policy
  const isRate = flowsBack(policy)
  return (tokens) => {
    if (tokens === least || (!isRate && tokens > least && untilFreeUs > 0)) return untilFreeUs
    return isRate ? Math.max(0, Math.ceil(untilFreeUs + ((tokens - least) * windowMs * 1000) / limit)) : undefined
  }
}

function countOf(runs: readonly LeaseRun[]): number {
  return runs.reduce((sum, { tokens }) => sum + tokens, 0)
}

/** Tokens are read in order, so the last run found is nearly always the right one. */
function runFinder(runs: readonly LeaseRun[]): (token: number) => LeaseRun {
  let index = 0
  let first = 0
  return (token) => {
    if (token < first) index = first = 0
    let run = runs[index] as LeaseRun
    while (token >= first + run.tokens && index < runs.length - 1) {
      first += run.tokens
      run = runs[++index] as LeaseRun
    }
    return run
  }
}
