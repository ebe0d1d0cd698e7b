import { combined, type Decision, refusal } from '../../decision/decision.js'
import type { CountTimes } from '../../decision/decision-decoder.js'
import { StoreError } from '../../errors.js'
import type { Grant } from '../../lease/grant.js'
import { emissionOf } from '../../policy/policy-numbers.js'
import type { OpenHold } from '../backend.js'
import type { PolicyEncoding, PolicyEncodings } from './policy-encoding.js'

export type StepVerb = 'take' | 'peek' | 'refund' | 'penalize' | 'block' | 'reset' | 'reserve' | 'giveBack' | 'release' | 'heartbeat'

/** The answer to a step of a hold, see `lua/scripts/hold.lua`. */
export interface StepHeld extends StepAnswer {
  readonly nowUs: number
  readonly done: boolean
  readonly rest: number
  readonly granted: number
  /** When it ends, on the server's clock; 0 where nothing is held. */
  readonly endUs: number
  readonly over: number
  readonly used: number
  readonly spent: number
  readonly debt: number
  readonly count: number
  readonly fault: OpenHold['fault']
}

/** A request about the key of one policy. */
export interface StepRequest {
  readonly encoding: PolicyEncoding
  readonly key: string
  /** With `block`: microseconds. */
  readonly tokens: number
  /** With `reserve`: the longest wait in microseconds. */
  readonly mostUs?: number | undefined
  /** With `giveBack`: the reservation. Times are on the server's clock. */
  readonly booking?: { readonly cost: number; readonly bookedUs: number; readonly atUs: number; readonly debt: number }
  /** With permits: its unique name. */
  readonly permit?: string | undefined
}

/** The state of one policy's key after a call. */
export interface KeyState {
  /** Whether the verb had its effect; with `peek`, whether a take would pass. */
  readonly done: boolean
  /** In the unit of the encoding. */
  readonly debt: number
  readonly blockedUs: number
  /** Microseconds until the requested tokens, else one token, would pass. Not with rates, nor a take that passed. */
  readonly untilFreeUs: number
  readonly untilNewUs: number
  readonly waitUs: number
  /** Tokens that are held of it; then the times are of rates, too. */
  readonly held?: number
}

export interface StepAnswer {
  /** The server's time; absent in the answer to an ordinary take. */
  readonly nowUs?: number
  /** For each request. */
  readonly states: readonly KeyState[]
}

/** The fields of {@link StepLease}, as `lua/scripts/lease.lua` documents them. */
const LEASE_FIELDS = ['nowUs', 'tokens', 'debt', 'blockedUs', 'untilFreeUs', 'untilNewUs', 'endUs'] as const

/** The answer to a lease. */
export type StepLease = Readonly<Record<(typeof LEASE_FIELDS)[number], number>> & { readonly held?: number }

const ANSWERS = 6
const HOLD_ANSWERS = 10
const TAKE_ANSWERS = 3
const HOLD_FAULTS = [undefined, 'unknown', 'closed', 'passed', 'beyond'] as const

/**
 * Decodes the reply to `count` requests: all fields of `lua/steps/parts.lua`, or the few of `lua/steps/*-take.lua` for an ordinary take.
 *
 * @throws {StoreError} `OUTAGE` for any other reply.
 */
export function answerIn(reply: unknown, count: number): StepAnswer {
  const isArray = Array.isArray(reply)
  if (count === 1 && !isArray) return { states: [taken(reply, reply)] }
  if (count === 1 && isArray && reply.length === TAKE_ANSWERS) return { states: [taken(reply[0], reply, reply[1], reply[2])] }
  const end = 1 + ANSWERS * count
  if (!isArray || (reply.length !== end && reply.length !== end + count)) throw notUnderstood(reply)
  const states: KeyState[] = []
  for (let at = 1; at < end; at += ANSWERS) {
    states.push({
      done: Number(reply[at]) === 1,
      debt: Number(reply[at + 1]),
      blockedUs: Number(reply[at + 2]),
      untilFreeUs: Number(reply[at + 3]),
      untilNewUs: Number(reply[at + 4]),
      waitUs: Number(reply[at + 5]),
      ...(reply.length > end && { held: Number(reply[end + states.length]) }),
    })
  }
  return { nowUs: Number(reply[0]), states }
}

/** @throws {StoreError} `OUTAGE` for a reply that `lua/scripts/hold.lua` does not give. */
export function heldIn(reply: unknown, policies: number): StepHeld {
  const at = 1 + (ANSWERS + 1) * policies
  if (!Array.isArray(reply) || reply.length !== at + HOLD_ANSWERS) throw notUnderstood(reply)
  const { states, nowUs = 0 } = answerIn(reply.slice(0, at), policies)
  const [done, rest, granted, endUs, over, used, spent, debt, count, fault] = reply.slice(at).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    0,
  ]
  return { states, nowUs, done: done === 1, rest, granted, endUs, over, used, spent, debt, count, fault: HOLD_FAULTS[fault] }
}

/** A negative debt means denied: nothing was spent. Of the largest debt that is -2^53. */
function taken(debt: unknown, reply: unknown, untilFreeUs: unknown = 0, untilNewUs: unknown = 0): KeyState {
  const units = typeof debt === 'string' ? Number.parseInt(debt, 10) : debt
  if (typeof units !== 'number' || !Number.isInteger(units) || units < -(2 ** 53) || units >= 2 ** 53) throw notUnderstood(reply)
  const done = units >= 0
  return {
    done,
    debt: done ? units : -1 - units,
    blockedUs: 0,
    untilFreeUs: Number(untilFreeUs),
    untilNewUs: Number(untilNewUs),
    waitUs: 0,
  }
}

/** @throws {StoreError} `OUTAGE` for a reply that `lua/scripts/lease.lua` does not give. */
export function leaseIn(reply: unknown): StepLease {
  const count = LEASE_FIELDS.length
  if (!Array.isArray(reply) || reply.length < count || reply.length > count + 1) throw notUnderstood(reply)
  const lease = Object.fromEntries(LEASE_FIELDS.map((field, i) => [field, Number(reply[i])])) as StepLease
  return reply.length > count ? { ...lease, held: Number(reply[count]) } : lease
}

export function notUnderstood(reply: unknown): StoreError {
  return new StoreError('OUTAGE', `the store answered ${Array.isArray(reply) ? `${reply.length} values` : typeof reply}`)
}

/** The decision in a script's answer to a verb with this cost, for each policy and combined. */
export function decisionFrom(verb: StepVerb, { encodings, isAllOf }: PolicyEncodings, states: readonly KeyState[], cost: number): Decision {
  if (!isAllOf) return partDecision(verb, encodings[0] as PolicyEncoding, states[0] as KeyState, cost)
  return combined(encodings.map((encoding, i) => partDecision(verb, encoding, states[i] as KeyState, cost)))
}

function partDecision(verb: StepVerb, encoding: PolicyEncoding, state: KeyState, cost: number): Decision {
  const { done, debt, blockedUs } = state
  const decoder = encoding.decoderOf(timesIn(state))
  const seenCost = verb === 'take' || verb === 'peek' || (verb === 'reserve' && !done) ? cost : 1
  const decision = verb === 'take' && done ? decoder.allowed(debt) : decoder.foreseen(debt, seenCost, Math.ceil(blockedUs / 1000))
  return { ...((state.held ?? 0) > 0 ? besideHolds(decision, state, verb === 'take' && done) : decision), source: 'store' }
}

/** With what is held counted as spent. */
function besideHolds(decision: Decision, { held = 0, blockedUs, untilFreeUs, untilNewUs }: KeyState, isTaken: boolean): Decision {
  const untilMs = isTaken ? 0 : Math.ceil(Math.max(blockedUs, untilFreeUs) / 1000)
  const retryAfterMs = decision.retryAfterMs === Number.POSITIVE_INFINITY ? decision.retryAfterMs : untilMs
  const resetAfterMs = Math.max(decision.resetAfterMs, Math.ceil(untilNewUs / 1000), untilMs)
  return { ...decision, allowed: retryAfterMs === 0, remaining: Math.max(0, decision.remaining - held), retryAfterMs, resetAfterMs }
}

/** The decision in the answer to a step of a hold: of one that was done as after a take, else as of a peek for what it lacks. */
export function heldDecision({ encodings, isAllOf }: PolicyEncodings, { done, states }: StepHeld, cost: number): Decision {
  const parts = encodings.map((encoding, i) => {
    const state = states[i] as KeyState
    if (done) return partDecision('take', encoding, { ...state, done }, 1)
    const blockMs = Math.ceil(state.blockedUs / 1000)
    const foreseen = encoding.decoderOf(timesIn(state)).foreseen(state.debt, cost, blockMs)
    return { ...besideHolds(foreseen, state, false), source: 'store' as const }
  })
  const decision = isAllOf ? combined(parts) : (parts[0] as Decision)
  return done ? decision : refusal(decision)
}

/** Microseconds until reserved tokens may be spent. */
export function waitUsIn(encoding: PolicyEncoding, state: KeyState): number {
  return encoding.decoderOf(timesIn(state)).waitUs(state.debt)
}

function timesIn({ untilFreeUs, untilNewUs, waitUs }: KeyState): CountTimes {
  return { untilFree: () => untilFreeUs, untilNew: () => untilNewUs, waitUs: () => waitUs }
}

/** Turns the answer to a lease, of which fewer than `least` tokens are useless, into times of single tokens. */
export type GrantOf = (lease: StepLease, least: number) => Grant

/** @param leaseUs the length of a lease. */
export function grantsOf(encoding: PolicyEncoding, leaseUs: number): GrantOf {
  return encoding.name === 'rate' ? rateGrants(encoding, leaseUs) : windowGrants(encoding, leaseUs)
}

/** With a rate, the debt after the lease says when more tokens conform. */
function rateGrants({ policy }: PolicyEncoding, leaseUs: number): GrantOf {
  const { unitsPerToken, unitsPerUs, capacity } = emissionOf(policy)
  const conformsUs = (units: number): number => Math.max(0, Math.ceil((units - capacity) / unitsPerUs))
  return ({ nowUs, tokens, debt, blockedUs, held = 0, untilFreeUs: besideUs }, least) => {
    const after = debt + tokens * unitsPerToken
    const untilFreeFor = (more: number): number => Math.max(conformsUs(after + more * unitsPerToken), more >= least ? besideUs : 0)
    const untilFreeUs = untilFreeFor(least)
    return {
      tokens,
      endUs: () => leaseUs,
      flowsBack: true,
      id: nowUs,
      untilFreeUs,
      untilFreeFor,
      blockedUs,
      remaining: Math.max(0, Math.floor((capacity - after) / unitsPerToken) - held),
      untilNewUs: Math.ceil(after / unitsPerUs),
    }
  }
}

/** With a window, tokens may be spent for the length of a lease, but not after the window's end. */
function windowGrants({ policy: { limit } }: PolicyEncoding, leaseUs: number): GrantOf {
  return ({ nowUs, tokens, debt, blockedUs, untilFreeUs, untilNewUs, endUs, held = 0 }, least) => {
    return {
      tokens,
      endUs: () => Math.min(leaseUs, endUs),
      flowsBack: false,
      id: nowUs,
      untilFreeUs,
      // In a fixed window every cost waits for its end; elsewhere a larger cost waits as long, or longer.
      untilFreeFor: (more) => (more === least || (more > least && untilFreeUs > 0) ? untilFreeUs : undefined),
      blockedUs,
      remaining: Math.max(0, limit - debt - tokens - held),
      untilNewUs,
    }
  }
}
