import type { PolicyEncoding } from './policy-encoding.js'

export type ScriptVerb = 'take' | 'peek' | 'refund' | 'penalize' | 'block' | 'reset' | 'reserve' | 'cancel' | 'release' | 'heartbeat'

/** What is asked about the key of one policy. */
export interface ScriptRequest {
  readonly encoding: PolicyEncoding
  readonly key: string
  /** Of `block` microseconds. */
  readonly tokens: number
  /** Of `reserve` the longest wait in microseconds. */
  readonly mostUs?: number | undefined
  /** Of `cancel`. */
  readonly booking?: ScriptReservation
  /** Of a permit: a name of its own, given by who takes it. */
  readonly permit?: string | undefined
}

/** What was booked, as giving it back needs to know. Times on the store's clock. */
export interface ScriptReservation {
  readonly cost: number
  readonly bookedUs: number
  readonly atUs: number
  readonly debt: number
}

/** How the key of one policy stands after a call. */
export interface KeyState {
  /** Whether the verb did what it is for; of a peek, whether a take would pass. */
  readonly done: boolean
  /** In what the encoding counts. */
  readonly debt: number
  readonly blockedUs: number
  /** Not of rates, nor of a take that passed: microseconds until what was asked for, otherwise one token, would pass. */
  readonly untilFreeUs: number
  readonly untilNewUs: number
  readonly waitUs: number
}

export interface ScriptAnswer {
  /** The store's time; an ordinary take may leave it out. */
  readonly nowUs?: number
  /** For each request. */
  readonly states: readonly KeyState[]
}

/** What a lease is, as `lua/scripts/lease.lua` says it. */
export interface ScriptLease {
  /** The store's time. */
  readonly nowUs: number
  readonly ready: number
  readonly later: number
  readonly debt: number
  readonly blockedUs: number
  readonly untilFreeUs: number
  readonly untilNewUs: number
  readonly laterUs: number
  readonly endUs: number
}
