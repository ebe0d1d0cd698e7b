import type { MessagePort } from 'node:worker_threads'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import type { DenialEvent } from '../../../sluicegate/dist/decision/diagnostics.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { RedisLimiterOptions } from '../../../sluicegate/dist/redis/create-redis-limiter.js'

/** What the thread of a synchronous limiter asks of the one that hosts the true one, a structured clone. */
export type LimiterCall =
  | { readonly make: string; readonly policy: Policy; readonly options: Omit<RedisLimiterOptions, 'client'> }
  | { readonly limiter: string; readonly nowMs: number; readonly verb: string; readonly args: readonly unknown[] }
  | { readonly of: number; readonly nowMs: number; readonly verb: string; readonly args: readonly unknown[] }
  | { readonly limiter: string; readonly nowMs: number; readonly count: 'keys' }

/** What it answers. */
export type LimiterAnswer =
  | { readonly value: unknown }
  /** A decision that holds something, or a booking: what later calls are `of`. */
  | { readonly permit: number; readonly decision: Decision }
  | { readonly booking: number; readonly allowed: boolean; readonly waitMs: number; readonly decision: Decision }
  | LimiterFailure

/** An error: about an argument of the call, or else a value that can be sent. */
export interface LimiterFailure {
  readonly name: string
  readonly code?: string
  readonly option?: string
  readonly message: string
  readonly argument?: number
  readonly value?: unknown
}

/** A result: the answer, and the denials reported meanwhile. */
export interface LimiterMessage {
  readonly answer: LimiterAnswer
  readonly denials: readonly DenialEvent[]
}

/** What the hosting thread is started with. */
export interface HostStart {
  /** Of Redis, of PostgreSQL, or {@link MEMORY_STORE}. */
  readonly url: string
  readonly calls: MessagePort
  /** One cell: 1 when an answer is there. */
  readonly answered: SharedArrayBuffer
}

/** Structured clones know no symbols. */
export const SYMBOL = 'a symbol, which no message takes'

/** Instead of a URL: a store that compares and swaps, in the memory of the hosting thread. */
export const MEMORY_STORE = 'memory:'
