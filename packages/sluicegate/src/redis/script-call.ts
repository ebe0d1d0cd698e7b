import type { PolicyEncoding } from './policy-encoding.js'

export type ScriptVerb = 'take' | 'peek' | 'refund' | 'penalize' | 'block' | 'reset' | 'reserve' | 'cancel' | 'release' | 'heartbeat'

/** A request about the key of one policy. */
export interface ScriptRequest {
  readonly encoding: PolicyEncoding
  readonly key: string
  /** With `block`: microseconds. */
  readonly tokens: number
  /** With `reserve`: the longest wait in microseconds. */
  readonly mostUs?: number | undefined
  /** With `cancel`. */
  readonly booking?: ScriptReservation
  /** With permits: its unique name. */
  readonly permit?: string | undefined
}

/** A reservation, as `cancel` needs it. Times are on the server's clock. */
export interface ScriptReservation {
  readonly cost: number
  readonly bookedUs: number
  readonly atUs: number
  readonly debt: number
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
}

export interface ScriptAnswer {
  /** The server's time; absent in the answer to an ordinary take. */
  readonly nowUs?: number
  /** For each request. */
  readonly states: readonly KeyState[]
}

/** The answer to a lease; `lua/scripts/lease.lua` documents its fields. */
export interface ScriptLease {
  /** The server's time. */
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
