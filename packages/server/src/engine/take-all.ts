import type { Decision, Key, Permit } from 'sluicegate'
import { type Awaitable, allDone, whenDone } from './awaitable.js'
import type { ServedPolicy, ServedReservation } from './served-policy.js'

/** One of the takes that pass together or not at all. */
export interface TakePart {
  readonly policy: ServedPolicy
  readonly key: Key
  readonly cost: number
  /** Has its part in the verdict, and is never charged. */
  readonly peekOnly?: boolean
  /** Is charged if the tokens are there, and has no part in the verdict: a denial becomes `allowed: true` with `wouldDeny: true`. */
  readonly shadow?: boolean
}

/** Options of {@link takeAll}. */
export interface TakeAllOptions {
  /** Whether the request passes, from the decision of each part; default: when all of them are allowed. Parts that are denied are never charged. */
  readonly passes?: (decisions: readonly Decision[]) => boolean
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
export function takeAll(parts: readonly TakePart[], { passes = everyOne }: TakeAllOptions = {}): Awaitable<Decision[]> {
  const [only] = parts
  if (parts.length === 1 && only !== undefined && passes === everyOne && !only.peekOnly) {
    return whenDone(only.policy.take(only.key, only.cost), (decision) => [shadowed(only, decision)])
  }
  const seen = allDone(parts.map(({ policy, key }, i) => policy.peekUncounted(key, costUpTo(parts, i))))
  return whenDone(seen, (states) => {
    const decisions = states.map((decision, i) => shadowed(parts[i] as TakePart, decision))
    if (!passes(decisions)) return refuse(parts, decisions)
    return parts.some(({ policy }) => policy.isShared) ? takeShared(parts, decisions, passes) : takeHere(parts, decisions)
  }) as Awaitable<Decision[]>
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
  for (const [i, part] of parts.entries()) {
    const decision = decisions[i] as Decision
    countPart(part.policy, decision, false)
    if (!decision.allowed && !part.policy.isShared) noteDenial(part, costUpTo(parts, i))
  }
  return decisions
}

/** A denied take, so that the key is in the list of denied keys. A moment after it was seen to be denied it may pass: then it goes back. */
function noteDenial({ policy, key }: TakePart, cost: number): void {
  const taken = policy.takeUncounted(key, cost) as Decision | Permit
  if (!taken.allowed) return
  if ('release' in taken) taken.release()
  else policy.refund(key, cost)
}

function countPart(policy: ServedPolicy, decision: Decision, isTaken: boolean): void {
  // What would have passed, and was not taken, is neither allowed nor denied.
  if (isTaken || !decision.allowed) policy.count(decision)
  else policy.counts.peeks++
}

/** All parts were seen to pass, and nothing has run since: each take passes as well. */
function takeHere(parts: readonly TakePart[], seen: readonly Decision[]): Decision[] {
  return parts.map((part, i) => {
    const before = seen[i] as Decision
    const isTaken = isCharged(part, before)
    const decision = isTaken ? (part.policy.takeUncounted(part.key, part.cost) as Decision) : before
    countPart(part.policy, decision, isTaken)
    return decision
  })
}

/** Reserves each part, since another process may have taken what was seen; then keeps all of them or cancels them. */
async function takeShared(
  parts: readonly TakePart[],
  seen: readonly Decision[],
  passes: (decisions: readonly Decision[]) => boolean,
): Promise<Decision[]> {
  const results = await Promise.allSettled(
    parts.map((part, i) => (isCharged(part, seen[i] as Decision) ? part.policy.reserveUncounted(part.key, part.cost) : undefined)),
  )
  const reservations = results.map((result) => (result.status === 'fulfilled' ? result.value : undefined))
  const failure = results.find((result) => result.status === 'rejected')
  const decisions = reservations.map((made, i) => shadowed(parts[i] as TakePart, made?.decision ?? (seen[i] as Decision)))
  if (failure !== undefined || !passes(decisions)) {
    await Promise.allSettled(reservations.map((made) => (made?.decision.allowed ? made.cancel() : undefined)))
    if (failure !== undefined) throw failure.reason
    return refuse(parts, decisions)
  }
  for (const [i, part] of parts.entries()) countPart(part.policy, decisions[i] as Decision, isHeld(reservations[i]))
  return decisions
}

function isHeld(reservation: ServedReservation | undefined): boolean {
  return reservation?.decision.allowed === true
}
