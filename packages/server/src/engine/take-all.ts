import type { Decision, Key, Permit } from 'sluicegate'
import { type Awaitable, answersOf, whenDone } from './awaitable.js'
import type { Latency } from './outcome.js'
import type { AskedPriority } from './priorities.js'
import type { ServedPolicy, ServedReservation } from './served-policy.js'
import { ServedWork } from './served-work.js'

/** One of the takes that pass together or not at all. */
export interface TakePart {
  readonly policy: ServedPolicy
  readonly key: Key
  readonly cost: number
  /** The class of the request, for policies with priorities. */
  readonly priority?: AskedPriority | undefined
  /** Has its part in the verdict, and is never charged. */
  readonly peekOnly?: boolean
  /** Is charged if the tokens are there, and has no part in the verdict: a denial becomes `allowed: true` with `wouldDeny: true`. */
  readonly shadow?: boolean
}

/** Options of {@link takeAll}. */
export interface TakeAllOptions {
  /** Whether the request passes, from the decision of each part; default: when all of them are allowed. Parts that are denied are never charged. */
  readonly passes?: (decisions: readonly Decision[]) => boolean
  /** Receives the time of the whole, once, unless all parts only look. */
  readonly latency?: Latency
}

/**
 * Takes from several policies, all or nothing. Answers with the decision of each part, in their order: what was taken, or, when the request does
 * not pass, what each part would have decided. Nothing is charged then.
 *
 * In memory this is exact: no other request comes in between. At a store each part is reserved, and those that passed are cancelled when
 * another one did not: never over, nothing charged in the end; a request that comes in between may be denied for tokens that come back.
 *
 * Parts with the same policy and key are counted together.
 */
export function takeAll(parts: readonly TakePart[], options: TakeAllOptions = {}): Awaitable<Decision[]> {
  const { passes = everyOne } = options
  const [only] = parts
  if (parts.length === 1 && only !== undefined && passes === everyOne && !only.peekOnly) {
    return whenDone(only.policy.take(only.key, only.cost, only.priority), (decision) => [shadowed(only, decision)])
  }
  const taken = timed(parts, options, () =>
    whenDone(seenNow(parts), (seen) => {
      if (!passes(seen)) return refuse(parts, seen)
      if (!parts.some(({ policy }) => policy.isShared)) return takeHere(parts, seen)
      return whenDone(reserveSeen(parts, seen, passes), ({ decisions }) => decisions)
    }),
  ) as Awaitable<Decision[]>
  const follower = parts[0]?.policy.follower
  if (follower === undefined) return taken
  return whenDone(taken, (decisions) => {
    follower.takenAll(parts, decisions, options)
    return decisions
  }) as Awaitable<Decision[]>
}

function timed<Value>(parts: readonly TakePart[], { latency }: TakeAllOptions, decide: () => Awaitable<Value>): Awaitable<Value> {
  if (latency === undefined || parts.every(({ peekOnly }) => peekOnly)) return decide()
  const startMs = performance.now()
  return whenDone(decide(), (value) => {
    latency.observe((performance.now() - startMs) / 1000)
    return value
  }) as Awaitable<Value>
}

/** The decision of each part, together with the parts before it that take from the same key. */
function seenNow(parts: readonly TakePart[]): Awaitable<Decision[]> {
  const states = answersOf(parts, ({ policy, key, priority }, i) => policy.uncounted.peek(key, costUpTo(parts, i), priority))
  return whenDone(states, (decisions) => decisions.map((decision, i) => shadowed(parts[i] as TakePart, decision))) as Awaitable<Decision[]>
}

function everyOne(decisions: readonly Decision[]): boolean {
  return decisions.every(({ allowed }) => allowed)
}

/** The cost of part `i` and of the parts before it that take from the same key. */
function costUpTo(parts: readonly TakePart[], i: number): number {
  const { policy, key, cost, peekOnly } = parts[i] as TakePart
  let sum = cost
  for (let j = 0; j < i; j++) {
    const other = parts[j] as TakePart
    if (other.policy === policy && !other.peekOnly && !peekOnly && sameKey(other.key, key)) sum += other.cost
  }
  return sum
}

function sameKey(a: Key, b: Key): boolean {
  return a === b || (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((key, i) => key === b[i]))
}

function shadowed({ shadow }: TakePart, decision: Decision): Decision {
  return shadow && !decision.allowed ? { ...decision, allowed: true, wouldDeny: true } : decision
}

/** Whether a part that `decision` belongs to is charged. */
function isCharged({ peekOnly }: TakePart, { allowed, wouldDeny }: Decision): boolean {
  return allowed && !wouldDeny && !peekOnly
}

/** Charges nothing. */
function refuse(parts: readonly TakePart[], decisions: Decision[]): Decision[] {
  return parts.map((part, i) => {
    const decision = decisions[i] as Decision
    if (!decision.allowed && !part.policy.isShared && part.policy.config.priorities === undefined) noteDenial(part, costUpTo(parts, i))
    return countPart(part, decision, false)
  })
}

/**
 * A denied take, so that the key is in the list of denied keys. A moment after it was seen to be denied it may pass: then it goes back, in the same
 * call and in memory, so that nothing has come in between.
 */
function noteDenial({ policy, key }: TakePart, cost: number): void {
  const taken = policy.uncounted.take(key, cost) as Decision | Permit
  if (!taken.allowed) return
  if ('release' in taken) taken.release()
  else policy.uncounted.refund(key, cost)
}

/** Counts the outcome. The answer has the soft limits that the key has reached. */
function countPart({ policy, key }: TakePart, decision: Decision, isTaken: boolean): Decision {
  // What would have passed, and was not taken, is neither allowed nor denied.
  if (isTaken || !decision.allowed) policy.count(decision)
  else policy.counts.peeks++
  return isTaken || !decision.allowed ? policy.spent(key, decision) : policy.looked(key, decision)
}

/** All parts were seen to pass, and nothing has run since: each take passes as well. */
function takeHere(parts: readonly TakePart[], seen: readonly Decision[]): Decision[] {
  return parts.map((part, i) => {
    const before = seen[i] as Decision
    const isTaken = isCharged(part, before)
    const decision = isTaken ? (part.policy.uncounted.take(part.key, part.cost) as Decision) : before
    return countPart(part, decision, isTaken)
  })
}

/** A part of a request that is charged, and what gives it back. */
export interface HeldPart {
  readonly part: TakePart
  readonly reservation: ServedReservation
}

/** The decisions of the parts, and what is charged of them; undefined when the request does not pass and nothing is charged. */
export interface ReservedAll {
  readonly decisions: Decision[]
  readonly held: readonly HeldPart[] | undefined
}

/** Options of {@link reserveAll}. */
export interface ReserveAllOptions extends TakeAllOptions {
  /** In memory the tokens are held for so long, and then free, instead of charged. */
  readonly heldMs?: number | undefined
}

/** {@link takeAll} whose tokens can be settled or cancelled later. */
export function reserveAll(parts: readonly TakePart[], options: ReserveAllOptions = {}): Awaitable<ReservedAll> {
  const { passes = everyOne } = options
  return timed(parts, options, () =>
    whenDone(seenNow(parts), (seen) =>
      passes(seen) ? reserveSeen(parts, seen, passes, options.heldMs) : { decisions: refuse(parts, seen), held: undefined },
    ),
  ) as Awaitable<ReservedAll>
}

/** Reserves each part, since another process may have taken what was seen; then keeps all of them or cancels them. */
function reserveSeen(
  parts: readonly TakePart[],
  seen: readonly Decision[],
  passes: (decisions: readonly Decision[]) => boolean,
  heldMs?: number,
): Awaitable<ReservedAll> {
  const attempts = answersOf(parts, (part, i) => (isCharged(part, seen[i] as Decision) ? attempt(() => reserved(part, heldMs)) : undefined))
  return whenDone(attempts, (results) => {
    const failed = results.find((result) => result !== undefined && 'error' in result)
    const made = results.map((result) => (result !== undefined && 'value' in result ? result.value : undefined))
    const decisions = parts.map((part, i) => shadowed(part, made[i]?.decision ?? (seen[i] as Decision)))
    const held = made.flatMap((reservation, i) => (isReserved(reservation) ? [{ part: parts[i] as TakePart, reservation }] : []))
    if (failed === undefined && passes(decisions)) {
      return { decisions: parts.map((part, i) => countPart(part, decisions[i] as Decision, isReserved(made[i]))), held }
    }
    const cancelled = answersOf(held, ({ reservation }) => attempt(() => reservation.cancel()))
    return whenDone(cancelled, () => {
      if (failed !== undefined && 'error' in failed) throw failed.error
      return { decisions: refuse(parts, decisions), held: undefined }
    })
  }) as Awaitable<ReservedAll>
}

/** In memory the tokens are held, and those of a caller that is lost are free after a time. */
function reserved({ policy, key, cost, priority }: TakePart, heldMs: number | undefined): Awaitable<ServedReservation> {
  if (heldMs === undefined || policy.limiterOf(key).open === undefined) return policy.uncounted.reserve(key, cost, priority)
  const work = new ServedWork(policy, key, { expect: cost, most: Number.POSITIVE_INFINITY, ttlMs: heldMs, over: 'cut' })
  return { decision: work.decision, settle: (actualCost) => work.close(actualCost), cancel: () => work.close(undefined) }
}

function isReserved(reservation: ServedReservation | undefined): reservation is ServedReservation {
  return reservation?.decision.allowed === true
}

type Attempt<Value> = { readonly value: Value } | { readonly error: unknown }

/** What `call` answers, or its error, however it comes. */
function attempt<Value>(call: () => Awaitable<Value>): Awaitable<Attempt<Value>> {
  try {
    const answer = call()
    if (!(answer instanceof Promise)) return { value: answer }
    return answer.then(
      (value) => ({ value }),
      (error: unknown) => ({ error }),
    )
  } catch (error) {
    return { error }
  }
}
