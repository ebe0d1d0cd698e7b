import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type {
  KeyState,
  ScriptAnswer,
  ScriptHeld,
  ScriptLease,
  ScriptRequest,
  ScriptVerb,
} from '../../../sluicegate/dist/shared/steps/script-call.js'
import type { ComputingStore } from '../../../sluicegate/dist/shared/steps/step-backend.js'

const STANDING: KeyState = { done: true, debt: 0, blockedUs: 0, untilFreeUs: 0, untilNewUs: 0, waitUs: 0 }
const LEASE: ScriptLease = {
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
  readonly verb: ScriptVerb
  readonly requests: readonly ScriptRequest[]
  /** Equal states of all requests: done, unless it is said otherwise. */
  answer(nowUs?: number, standing?: Partial<KeyState>): void
  fail(error: Error): void
}

/** A store that answers when a test says so, if ever. */
export class HeldScripts implements ComputingStore {
  readonly asked: HeldQuestion[] = []
  readonly leases: { readonly encoding: PolicyEncoding; readonly answer: (lease: Partial<ScriptLease>) => void }[] = []

  ask(verb: ScriptVerb, requests: readonly ScriptRequest[]): Promise<ScriptAnswer> {
    return new Promise((resolve, fail) => {
      const answer: HeldQuestion['answer'] = (nowUs = 0, standing = {}) => {
        resolve({ nowUs, states: requests.map(() => ({ ...STANDING, ...standing })) })
      }
      this.asked.push({ verb, requests, answer, fail })
    })
  }

  /** Never answers. */
  hold(): Promise<ScriptHeld> {
    return new Promise(() => undefined)
  }

  lease(encoding: PolicyEncoding): Promise<ScriptLease> {
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
  of(verb: ScriptVerb): readonly HeldQuestion[] {
    return this.asked.filter((question) => question.verb === verb)
  }
}
