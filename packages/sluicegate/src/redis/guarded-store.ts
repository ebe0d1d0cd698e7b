import type { Clock } from '../clock.js'
import { CallGuard } from '../shared/call-guard.js'
import { undoingOf } from './late-answer.js'
import type { Store, StoreAnswer, StoreLease, StoreRequest, StoreVerb } from './store.js'
import type { StoreForm } from './store-form.js'

/**
 * A store behind a guard. A booking or permit that is given after the caller was told that the store does not answer goes back; other
 * tokens stay spent.
 */
export class GuardedStore extends CallGuard implements Store {
  private readonly store: Store

  constructor(store: Store, clock: Clock, timeoutMs: number) {
    super(store, clock, timeoutMs)
    this.store = store
  }

  serverOf(key: string): string | undefined {
    return this.store.serverOf(key)
  }

  slotOf(key: string): number | undefined {
    return this.store.slotOf(key)
  }

  ask(verb: StoreVerb, requests: readonly StoreRequest[]): Promise<StoreAnswer> {
    const { key, tokens } = requests[0] as StoreRequest
    const charges = verb === 'take' || verb === 'reserve'
    return this.guarded(
      key,
      (recall) => {
        const answer = this.store.ask(verb, requests, recall)
        if (verb === 'reserve') this.unwanted.sent(key, answer)
        return answer
      },
      (late) => this.undo(verb, requests, late),
      (answer) => {
        if (charges && allDone(answer)) this.counts.charged += tokens
      },
    )
  }

  lease(form: StoreForm, key: string, want: number, horizonUs: number, least: number): Promise<StoreLease> {
    return this.guarded(key, (recall) => this.store.lease(form, key, want, horizonUs, least, recall))
  }

  private undo(verb: StoreVerb, requests: readonly StoreRequest[], answer: StoreAnswer): void {
    if (verb === 'take' && allDone(answer)) {
      const [{ tokens }] = requests as readonly [StoreRequest]
      this.events.charged(
        requests.map(({ key }) => key),
        tokens,
      )
    }
    const undoing = undoingOf(verb, requests, answer)
    if (undoing === undefined) return
    if (undoing.verb === 'cancel') {
      const { key } = requests[0] as StoreRequest
      this.unwanted.collect(key, answer.nowUs ?? 0, () => this.ask(undoing.verb, undoing.requests))
      // Past the guard: the server has just answered. Should that not arrive, a permit ends by its time to live.
    } else this.store.ask(undoing.verb, undoing.requests).catch(() => undefined)
  }
}

function allDone({ standings }: StoreAnswer): boolean {
  return standings.every(({ done }) => done)
}
