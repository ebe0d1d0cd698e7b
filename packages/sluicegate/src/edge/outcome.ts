import { bindsMore } from '../combined-decision.js'
import type { Decision } from '../decision.js'
import type { HeaderPair } from '../headers/header-pair.js'
import type { Delay } from '../slow-down.js'
import type { Settle } from './settling.js'

/** The request goes on. */
export interface Pass {
  readonly passes: true
  /** For the response, whatever it will be. */
  readonly headers: readonly HeaderPair[]
  /** The strictest of the limits; undefined where none was asked. */
  readonly decision: Decision | undefined
  /** Where it is there, to be called once the response has ended: it gives back places, and what does not count after all. */
  readonly settle: Settle | undefined
  /** Before it goes on; whoever was told of the outcome need not wait any more. */
  readonly delay?: Delay
}

/** The request is answered here. */
export interface Answer {
  readonly passes: false
  readonly status: number
  /** With the type of the body. */
  readonly headers: readonly HeaderPair[]
  readonly body: string
  readonly decision: Decision
}

/** What is to be done with a request. */
export type Outcome = Pass | Answer

/** Nobody was asked. */
export const PASS: Pass = Object.freeze({ passes: true, headers: [], decision: undefined, settle: undefined })

/** Of what was decided about a request before and now what is stricter; null where no limit was asked. */
export function stricter(before: Decision | null, now: Decision | undefined): Decision | null {
  return now === undefined || (before !== null && !bindsMore(now, before)) ? before : now
}
