import type { Decision } from '../decision/decision.js'
import type { Key } from '../key.js'
import type { OpenOptions } from './hold.js'

/** What came of a step of {@link HoldsById}. */
export interface HoldAnswer {
  /** Whether it was done. */
  readonly isDone: boolean
  /** The state of the key, as a take of 1 would find it; where there was no room, what denies it. */
  readonly decision: Decision
  /** Tokens that are held. */
  readonly held: number
  /** Tokens that the work has spent, and those of them that are debt. */
  readonly used: number
  readonly over: number
  /** Tokens that this step has spent, and those of them that are debt; 0 of one that was answered before. */
  readonly spent: number
  readonly debt: number
  /**
   * Why it was not done, apart from room: no such hold, or one of another key; it was closed; a later step was answered before; or it would cost more than
   * its `most`.
   */
  readonly fault?: 'unknown' | 'closed' | 'passed' | 'beyond' | undefined
}

/**
 * Open work that the store keeps under an id: any process that has key and id goes on with it, and none takes it along when it ends. Each step is one call to the
 * store. Steps with rising numbers count once each, however often they are said: with the number of the last one nothing changes, and the answer is the same. An
 * id is known for one `ttl` after the hold has ended.
 *
 * All reject with `PolicyError`, and with `StoreError` `OUTAGE` where the store does not answer.
 */
export interface HoldsById {
  /**
   * Opens work, see `open` of a limiter. `over: 'wait'` is for a caller that says a refused piece again, with its number, until there is room: what is held is
   * free meanwhile.
   *
   * @param id 32 hexadecimal digits, from 128 random bits: who knows it may spend.
   */
  open(key: Key, id: string, options?: OpenOptions): Promise<HoldAnswer>
  /** How the work stands, as its open said again would answer; changes nothing, and renews nothing. */
  peek(key: Key, id: string): Promise<HoldAnswer>
  /** Spends a piece, and renews the hold. @param call the number of the step, from 1; undefined: the next one. */
  add(key: Key, id: string, cost: number, call?: number): Promise<HoldAnswer>
  /** Ends the work. @param cost what it cost in all; undefined: what was added counts. */
  close(key: Key, id: string, cost?: number, call?: number): Promise<HoldAnswer>
}
