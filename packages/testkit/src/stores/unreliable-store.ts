import type { CasState, CasStore, CasSwap } from '../../../sluicegate/dist/store/cas-store.js'

/** What happens to one call: when it reaches the store and its answer the caller, and what of it is lost. Times are milliseconds. */
export interface Passage {
  readonly thereMs: number
  readonly backMs: number
  readonly isRequestLost?: boolean
  readonly isReplyLost?: boolean
  /** The caller receives an error, and the request reaches the store this many milliseconds after it. */
  readonly strayMs?: number
}

/** A store behind a network that delays, reorders and loses calls, on a clock that the test moves. */
export class UnreliableStore implements CasStore {
  readonly name = 'unreliable'
  private readonly store: Required<Omit<CasStore, 'step'>>
  private readonly after: (ms: number, call: () => void) => unknown
  private readonly passage: () => Passage

  constructor(store: Required<Omit<CasStore, 'step'>>, after: (ms: number, call: () => void) => unknown, passage: () => Passage) {
    this.store = store
    this.after = after
    this.passage = passage
  }

  read(key: string): Promise<CasState> {
    return this.passed(() => this.store.read(key))
  }

  swap(swap: CasSwap): ReturnType<CasStore['swap']> {
    return this.passed(() => this.store.swap(swap))
  }

  readAll(keys: readonly string[]): Promise<readonly CasState[]> {
    return this.passed(() => this.store.readAll(keys))
  }

  swapAll(swaps: readonly CasSwap[]): ReturnType<Required<Omit<CasStore, 'step'>>['swapAll']> {
    return this.passed(() => this.store.swapAll(swaps))
  }

  private passed<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    const { thereMs, backMs, isRequestLost = false, isReplyLost = false, strayMs } = this.passage()
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error('the connection broke'))
      if (strayMs !== undefined) {
        this.after(thereMs, fail)
        this.after(thereMs + strayMs, () => void call().catch(() => undefined))
        return
      }
      this.after(thereMs, () => {
        if (isRequestLost) return void this.after(backMs, fail)
        void call().then((answer) => this.after(backMs, () => (isReplyLost ? fail() : resolve(answer))), reject)
      })
    })
  }
}
