import type { TargetPlan } from './load-plan.js'

/** What came of one request. An error is an answer that is no decision, or no answer. */
export type LoadOutcome = 'allowed' | 'denied' | 'error'

/** What receives the load. */
export interface LoadTarget {
  /** Sends one request. Never rejects: a failure is the outcome `error`, with its cause in {@link LoadTarget.errors}. */
  take(key: string): Promise<LoadOutcome>
  /** Failures by their text; at most {@link MAX_ERROR_TEXTS} texts. */
  readonly errors: ErrorTexts
  close(): Promise<void>
}

/** How the targets `memory` and `redis` are opened: by the service, which owns the engine. */
export type OpenEngine = (plan: TargetPlan) => Promise<LoadTarget>

const MAX_ERROR_TEXTS = 20
const MAX_ERROR_CHARACTERS = 200

/** Failures counted by their text, in bounded memory. */
export class ErrorTexts {
  readonly counts = new Map<string, number>()

  /** Counts the failure; returns the outcome that it is. */
  add(text: string): 'error' {
    const short = text.slice(0, MAX_ERROR_CHARACTERS)
    const name = this.counts.has(short) || this.counts.size < MAX_ERROR_TEXTS ? short : 'other errors'
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
    return 'error'
  }
}
