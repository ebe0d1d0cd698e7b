import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type {
  KeyState,
  StepAnswer,
  StepHeld,
  StepLease,
  StepRequest,
  StepVerb,
} from '../../../sluicegate/dist/shared/steps/step-answers.js'
import type { ComputingStore } from '../../../sluicegate/dist/shared/steps/step-backend.js'

const STANDING: KeyState = { done: true, debt: 0, blockedUs: 0, untilFreeUs: 0, untilNewUs: 0, waitUs: 0 }
const LEASE: StepLease = {
  nowUs: 0,
  tokens: 0,
  debt: 0,
  blockedUs: 0,
  untilFreeUs: 0,
  untilNewUs: 0,
  endUs: 3_600_000_000,
}

/** What a store was asked, until a test says what came of it. */
export interface HeldQuestion {
  readonly verb: StepVerb
  readonly requests: readonly StepRequest[]
  /** Equal states of all requests: done, unless it is said otherwise. */
  answer(nowUs?: number, standing?: Partial<KeyState>): void
  fail(error: Error): void
}

/** A store that answers when a test says so, if ever. */
export class HeldScripts implements ComputingStore {
  readonly asked: HeldQuestion[] = []
  readonly leases: { readonly encoding: PolicyEncoding; readonly answer: (lease: Partial<StepLease>) => void }[] = []

  ask(verb: StepVerb, requests: readonly StepRequest[]): Promise<StepAnswer> {
    return new Promise((resolve, fail) => {
      const answer: HeldQuestion['answer'] = (nowUs = 0, standing = {}) => {
        resolve({ nowUs, states: requests.map(() => ({ ...STANDING, ...standing })) })
      }
      this.asked.push({ verb, requests, answer, fail })
    })
  }

  /** Never answers. */
  hold(): Promise<StepHeld> {
    return new Promise(() => undefined)
  }

  lease(encoding: PolicyEncoding): Promise<StepLease> {
    return new Promise((resolve) => {
      this.leases.push({ encoding, answer: (lease) => resolve({ ...LEASE, ...lease }) })
    })
  }

  serverOf(): undefined {
    return undefined
  }

  slotOf(): undefined {
    return undefined
  }

  /** Those that were asked this verb. */
  of(verb: StepVerb): readonly HeldQuestion[] {
    return this.asked.filter((question) => question.verb === verb)
  }
}
