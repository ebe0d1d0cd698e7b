import { StoreError } from '../errors.js'
import type { CancelSignal } from '../shared/backend.js'
import type { Draw, Drawn, HomeAnswer, PoolBatch, Refill, RegionPool } from '../shared/region-pool.js'
import type { SwapCalls } from '../shared/swap-calls.js'
import type { CasState } from '../store/cas-store.js'
import { RegionKey } from './region-key.js'

/** A swap that others were before is made again, with what they left; so often. */
const MOST_SWAPS = 50
/** Verbs that may wait for one key. */
const MOST_WAITING = 10_000

/** A verb that waits for its key. */
interface Work {
  readonly isLook: boolean
  readonly signal: CancelSignal | undefined
  run(own: RegionKey): void
  done(): void
  fail(error: unknown): void
}

/**
 * What a region holds of one policy's keys in any store that compares and swaps. A verb is computed here, on the state and at the time of the
 * store, and swapped in. Verbs of this process for one key that wait for one another go together.
 */
export class StoredPool implements RegionPool {
  private readonly calls: SwapCalls
  private readonly keyOf: (key: string) => string
  private readonly waiting = new Map<string, Work[]>()

  /** @param keyOf where the store keeps a key. */
  constructor(calls: SwapCalls, keyOf: (key: string) => string) {
    this.calls = calls
    this.keyOf = keyOf
  }

  draw(key: string, draw: Draw, signal?: CancelSignal): Promise<Drawn> {
    return this.step(key, (own) => own.draw(draw), draw.demand === undefined, signal)
  }

  claim(key: string, claim: { readonly claimedUs: number; readonly claimUs: number }): Promise<number> {
    return this.step(key, (own) => own.claim(claim))
  }

  refill(key: string, answer: Refill | HomeAnswer): Promise<number> {
    return this.step(key, (own) => own.refill(answer))
  }

  giveBack(key: string, batch: PoolBatch): Promise<boolean> {
    return this.step(key, (own) => own.giveBack(batch))
  }

  reclaim(key: string, endUs: number): Promise<number> {
    return this.step(key, (own) => own.reclaim(endUs))
  }

  addDebt(key: string, tokens: number): Promise<number> {
    return this.step(key, (own) => own.addDebt(tokens))
  }

  takeDebt(key: string): Promise<number> {
    return this.step(key, (own) => own.takeDebt())
  }

  block(key: string, us: number): Promise<unknown> {
    return this.step(key, (own) => own.block(us))
  }

  private step<Answer>(key: string, verb: (own: RegionKey) => Answer, isLook = false, signal?: CancelSignal): Promise<Answer> {
    const name = this.keyOf(key)
    return new Promise((resolve, reject) => {
      let answer: Answer
      const run = (own: RegionKey): void => {
        answer = verb(own)
      }
      const work = { isLook, signal, run, done: () => resolve(answer), fail: reject }
      const waiting = this.waiting.get(name)
      if (waiting === undefined) {
        this.waiting.set(name, [work])
        void this.runAll(name)
      } else if (waiting.length < MOST_WAITING) waiting.push(work)
      else reject(new StoreError('OUTAGE', `${MOST_WAITING} calls of this process wait for this key already`))
    })
  }

  private async runAll(name: string): Promise<void> {
    for (;;) {
      const works = (this.waiting.get(name) ?? []).splice(0).filter(({ signal }) => signal?.aborted !== true)
      if (works.length === 0 && this.waiting.get(name)?.length === 0) break
      if (works.length === 0) continue
      try {
        await this.swap(name, works)
        for (const work of works) work.done()
      } catch (error) {
        for (const work of works) work.fail(error)
      }
    }
    this.waiting.delete(name)
  }

  private async swap(key: string, works: readonly Work[]): Promise<void> {
    const [read] = await this.calls.read([key])
    let state = read as CasState
    for (let swaps = 0; swaps < MOST_SWAPS; swaps++) {
      const own = new RegionKey(state.value && new TextDecoder().decode(state.value))
      own.load(state.nowUs)
      for (const { isLook, run } of works) run(isLook ? own.copy() : own)
      if (works.every(({ isLook }) => isLook)) return
      const value = new TextEncoder().encode(own.saved)
      const outcome = await this.calls.swap([{ key, version: state.version, value, ttlMs: own.keptMs }])
      if (outcome.swapped) return
      state = outcome.states[0] as CasState
    }
    throw new StoreError('OUTAGE', `${MOST_SWAPS} swaps of one key were too late: other processes were first`)
  }
}
