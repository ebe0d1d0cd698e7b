import type { ScriptCalls } from '../redis/redis-backend.js'
import type { StoreAnswer, StoreLease, StoreRequest, StoreStanding, StoreVerb } from '../redis/store.js'
import type { StoreForm } from '../redis/store-form.js'

const STANDING: StoreStanding = { done: true, debt: 0, blockedUs: 0, untilFreeUs: 0, untilNewUs: 0, waitUs: 0 }
const LEASE: StoreLease = {
  nowUs: 0,
  ready: 0,
  later: 0,
  debt: 0,
  blockedUs: 0,
  untilFreeUs: 0,
  untilNewUs: 0,
  laterUs: 0,
  endUs: 3_600_000_000,
}

/** What a store was asked, until a test says what came of it. */
export interface HeldQuestion {
  readonly verb: StoreVerb
  readonly requests: readonly StoreRequest[]
  /** Equal standings of all requests: done, unless it is said otherwise. */
  answer(nowUs?: number, standing?: Partial<StoreStanding>): void
  fail(error: Error): void
}

/** A store that answers when a test says so, if ever. */
export class HeldStore implements ScriptCalls {
  readonly asked: HeldQuestion[] = []
  readonly leases: { readonly form: StoreForm; readonly answer: (lease: Partial<StoreLease>) => void }[] = []

  ask(verb: StoreVerb, requests: readonly StoreRequest[]): Promise<StoreAnswer> {
    return new Promise((resolve, fail) => {
      const answer: HeldQuestion['answer'] = (nowUs = 0, standing = {}) => {
        resolve({ nowUs, standings: requests.map(() => ({ ...STANDING, ...standing })) })
      }
      this.asked.push({ verb, requests, answer, fail })
    })
  }

  lease(form: StoreForm): Promise<StoreLease> {
    return new Promise((resolve) => {
      this.leases.push({ form, answer: (lease) => resolve({ ...LEASE, ...lease }) })
    })
  }

  serverOf(): undefined {
    return undefined
  }

  slotOf(): undefined {
    return undefined
  }

  /** Those that were asked this verb. */
  of(verb: StoreVerb): readonly HeldQuestion[] {
    return this.asked.filter((question) => question.verb === verb)
  }
}
