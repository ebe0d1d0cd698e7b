import type { Key } from 'sluicegate'
import { AllOfOracle } from './oracle/all-of-oracle.js'
import type { Oracle } from './oracle/oracle.js'
import { oracleFor } from './oracle/oracle-for.js'
import type { PolicySpec } from './oracle/policy-spec.js'

/** How many ways of keyStateOf explain an answer: of those where all was remembered, and where something was forgotten. */
interface Explained {
  readonly kept: number
  readonly lost: number
}

/** How a key may stand: an oracle for each policy, and how they answer together. */
interface KeyState {
  readonly parts: readonly Oracle[]
  readonly whole: Oracle
}

/** One of a crowd: all the ways in which it may stand, as each of its policies may have forgotten it where a take of 1 would pass. */
export class CrowdKey {
  readonly #key: Key
  #states: readonly KeyState[]

  constructor(spec: PolicySpec, key: Key) {
    this.#key = key
    this.#states = [keyStateOf(spec.algorithm === 'all-of' ? spec.parts.map(oracleFor) : [oracleFor(spec)], spec.algorithm === 'all-of')]
  }

  /** Goes on in those ways only that fit, in a call at that time; a key that was turned away was forgotten by at least one policy. */
  goOn(fits: (oracle: Oracle) => boolean, nowMs: number, isTurnedAway: boolean): Explained {
    const forgetful = this.#states.flatMap((keyStateOf) => this.#forgetting(keyStateOf, nowMs))
    const kept = isTurnedAway ? [] : this.#states.filter(({ whole }) => fits(whole))
    const lost = forgetful.filter(({ whole }) => fits(whole))
    this.#states = [...new Map([...kept, ...lost].map((keyStateOf) => [keyStateOf.whole.stateTextOf(this.#key), keyStateOf])).values()]
    return { kept: kept.length, lost: lost.length }
  }

  /** Every way to forget some of it. */
  #forgetting({ parts, whole }: KeyState, nowMs: number): KeyState[] {
    const may = parts.map((part, i) => part.peek(this.#own(i), 1, nowMs).remaining >= 1)
    const found: KeyState[] = []
    for (let chosen = 1; chosen < 2 ** parts.length; chosen++) {
      if (parts.some((_, i) => isChosen(chosen, i) && !may[i])) continue
      const copies = parts.map((part) => part.copy())
      for (const [i, copy] of copies.entries()) if (isChosen(chosen, i)) copy.forget(this.#own(i))
      found.push(keyStateOf(copies, whole instanceof AllOfOracle))
    }
    return found
  }

  #own(part: number): string {
    return typeof this.#key === 'string' ? this.#key : (this.#key[part] as string)
  }
}

function keyStateOf(parts: readonly Oracle[], isAllOf: boolean): KeyState {
  return { parts, whole: isAllOf ? new AllOfOracle(parts) : (parts[0] as Oracle) }
}

function isChosen(chosen: number, part: number): boolean {
  return ((chosen >> part) & 1) === 1
}
