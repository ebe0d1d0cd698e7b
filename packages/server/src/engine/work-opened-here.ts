import { type HoldsById, type Key, StoreError } from 'sluicegate'
import { HeldById } from './held-by-id.js'
import type { ServedPolicy } from './served-policy.js'

type HoldAnswer = Awaited<ReturnType<HoldsById['open']>>

/** Work of which this process knows something. */
interface Work {
  readonly served: ServedPolicy
  readonly key: Key
  readonly ttlMs: number
  held: number
  used: number
}

/** So much work is followed, with the same for one key. */
const MOST = 100_000
/** Looks at the store that are under way at once; others come a moment later. */
const MOST_LOOKS = 64
const LATER_MS = 1_000
/** Of its time, until a look at work that was silent. */
const SOON = 1 / 4

/**
 * Open work at a store that this process has opened, for its figures: as of the last call that came here. Where none has come for its time, a look at the store says
 * how it stands, as other processes may go on with it.
 */
export class WorkOpenedHere {
  readonly #work: HeldById<Work>
  readonly #look: (work: Work, number: string) => Promise<HoldAnswer>
  #looks = 0

  constructor(nowMs: () => number, look: (work: Work, number: string) => Promise<HoldAnswer>) {
    this.#look = look
    this.#work = new HeldById({ what: 'works', max: MOST, maxPerKey: MOST }, nowMs, (work, number) => void this.#silent(work, number))
  }

  opened(number: string, served: ServedPolicy, key: Key, ttlMs: number, answer: HoldAnswer): void {
    const known = this.#work.get(number)
    if (known !== undefined || this.#work.size >= MOST) {
      this.heard(number, answer)
      return
    }
    const work = { served, key, ttlMs, held: 0, used: 0 }
    served.holds.open++
    stands(work, answer)
    this.#follow(work, ttlMs, number)
  }

  /** The answer to a call of any work. */
  heard(number: string, answer: HoldAnswer): void {
    const work = this.#work.get(number)
    if (work === undefined) return
    stands(work, answer)
    this.#work.renew(number, work.ttlMs)
  }

  closed(number: string): void {
    const work = this.#work.remove(number)
    if (work !== undefined) ended(work)
  }

  /** To be called about once a second. False: there is more. */
  sweep(): boolean {
    return this.#work.sweep()
  }

  async #silent(work: Work, number: string): Promise<void> {
    if (this.#looks >= MOST_LOOKS) return this.#follow(work, LATER_MS, number)
    this.#looks++
    const untilMs = await this.#look(work, number).then(
      (answer) => nextLookMs(work, answer),
      (error) => (isOut(error) ? work.ttlMs : 0),
    )
    this.#looks--
    if (untilMs > 0) this.#follow(work, untilMs, number)
    else ended(work)
  }

  #follow(work: Work, forMs: number, number: string): void {
    if (this.#work.size >= MOST || this.#work.get(number) !== undefined) ended(work)
    else this.#work.add('', work, forMs, number)
  }
}

/** When to look again; 0: it is over. What was held and is no more, while nothing was spent, has lapsed. */
function nextLookMs(work: Work, answer: HoldAnswer): number {
  const { fault, held, used } = answer
  if (fault !== undefined && fault !== 'passed') return 0
  const isSilent = used === work.used
  if (isSilent && work.held > 0 && held === 0) {
    work.served.holds.lapsed++
    return 0
  }
  stands(work, answer)
  // A hold ends a little after its time, and the store forgets it a time later.
  return isSilent ? work.ttlMs * SOON : work.ttlMs
}

/** While the store is out, nobody knows better. */
function isOut(error: unknown): boolean {
  return error instanceof StoreError && error.code !== 'CLOSED'
}

function stands(work: Work, { held, used }: HoldAnswer): void {
  work.served.holds.held += held - work.held
  work.held = held
  work.used = used
}

function ended(work: Work): void {
  work.served.holds.open--
  work.served.holds.held -= work.held
}
