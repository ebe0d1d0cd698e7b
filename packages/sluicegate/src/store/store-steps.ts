import { StoreError } from '../errors.js'
import { isRate, type Policy, policiesOf } from '../policy/policy.js'
import { DEEPEST_DEBT_BURSTS, emissionOf, FURTHEST_US } from '../policy/policy-numbers.js'
import type { CallerSignal } from '../shared/backend.js'
import type { EncodingName, PolicyEncoding } from '../shared/steps/policy-encoding.js'
import type { KeyState, StepAnswer, StepHeld, StepLease, StepRequest, StepVerb } from '../shared/steps/step-answers.js'
import type { ComputingStore } from '../shared/steps/step-backend.js'
import type { CasStep, CasStepped } from './cas-store.js'
import { KeySession } from './key-session.js'
import type { StateOf, StepsTogether } from './steps-together.js'
import { storeKeys } from './store-key.js'
import { decodedValue } from './stored-value.js'

const MOST_US = 1e15
const NO_BOOKING = [0, 0, 0] as const

/** What is thrown where the store cannot make steps now. */
export class NoSteps extends Error {}

/** Whether a store that computes makes the steps of a policy: those of rates and of windows that are not of a calendar. */
export function isStepped(policy: Policy): boolean {
  return policiesOf(policy).every((part) => isRate(part) || (part.algorithm === 'fixed-window' && part.calendar === undefined))
}

/** The numbers of a policy, as {@link CasStep} has them. */
interface Numbers {
  readonly unit: number
  readonly pace: number
  readonly cap: number
  readonly lent: number
}

/** Steps of rates and fixed windows in a store that computes. */
export class StoreSteps implements ComputingStore {
  private readonly calls: StepsTogether
  private readonly prefix: string
  private readonly numbers = new WeakMap<PolicyEncoding, Numbers>()
  /** Where the store keeps the keys of each encoding. */
  private readonly places = new WeakMap<PolicyEncoding, (key: string) => string>()
  /** Read values that were swapped. */
  private readonly sessions = new WeakMap<PolicyEncoding, KeySession>()

  constructor(calls: StepsTogether, prefix: string) {
    this.calls = calls
    this.prefix = prefix
  }

  async ask(verb: StepVerb, requests: readonly StepRequest[], signal?: CallerSignal): Promise<StepAnswer> {
    // Reservations of several policies are for now.
    const made = verb === 'reserve' && requests.length > 1 ? 'take' : verb
    if (made === 'release' || made === 'heartbeat') throw new NoSteps('permits are swapped')
    const steps = requests.map((request) => this.stepOf(made, request))
    if (steps.length > 1 && new Set(steps.map(({ key }) => key)).size < steps.length) {
      throw new StoreError('OUTAGE', 'policies of one name have one key: give each of them its own')
    }
    const outcome = await this.calls.ask(steps, this.stateOf(requests), signal)
    if (outcome === undefined) throw new NoSteps('the store makes no steps now')
    const states = requests.map((request, i) =>
      keyStateOf(verb, request, steps[i] as CasStep, outcome.steps[i] as CasStepped, outcome.index),
    )
    return { nowUs: Math.max(...outcome.steps.map(({ nowUs }) => nowUs)), states }
  }

  hold(): Promise<StepHeld> {
    return Promise.reject(new NoSteps('holds are swapped'))
  }

  async lease(encoding: PolicyEncoding, key: string, want: number, least: number, signal?: CallerSignal): Promise<StepLease> {
    const request: StepRequest = { encoding, key, tokens: want }
    const step: CasStep = { ...this.stepOf('lease', request), amount: Math.max(want, least), bound: least }
    const outcome = await this.calls.ask([step], this.stateOf([request]), signal)
    const [stepped] = outcome?.steps ?? []
    if (stepped === undefined) throw new NoSteps('the store makes no steps now')
    const { done, debt, nowUs, state } = stepped
    const isClosed = step.pace === 0 && state.at > nowUs
    const before = step.pace > 0 ? (done > 0 ? debt - done * step.unit : Math.max(debt, step.lent)) : isClosed ? step.cap : debt - done
    const { untilFreeUs, untilNewUs, blockedUs } = timesOf(step, stepped, debt, least)
    const endUs = step.pace > 0 || isClosed ? 0 : state.at + step.unit - nowUs
    return { nowUs, tokens: done, debt: before, blockedUs, untilFreeUs, untilNewUs, endUs }
  }

  private keyOf({ encoding, key }: StepRequest): string {
    let placeOf = this.places.get(encoding)
    if (placeOf === undefined) {
      placeOf = storeKeys(this.prefix, encoding.policy, encoding.storedName)
      this.places.set(encoding, placeOf)
    }
    return placeOf(key)
  }

  private stepOf(verb: CasStep['verb'], request: StepRequest): CasStep {
    const { encoding, tokens, mostUs = 0, booking } = request
    const numbers = this.numbersOf(encoding)
    const { unit, pace, cap, lent } = numbers
    return {
      key: this.keyOf(request),
      verb,
      unit,
      pace,
      cap,
      lent,
      amount: verb === 'block' ? Math.round(Math.min(tokens, MOST_US)) : encoding.amountOf(tokens),
      times: 1,
      bound: booking?.atUs ?? Math.min(Math.ceil(mostUs), longestWaitUs(numbers)),
      booking: booking === undefined ? NO_BOOKING : [encoding.amountOf(booking.cost), booking.debt, booking.bookedUs],
      from: undefined,
    }
  }

  private numbersOf(encoding: PolicyEncoding): Numbers {
    let numbers = this.numbers.get(encoding)
    if (numbers === undefined) {
      numbers = numbersOf(encoding)
      this.numbers.set(encoding, numbers)
    }
    return numbers
  }

  /** Of the key whose value was swapped the state in this value, once. */
  private stateOf(requests: readonly StepRequest[]): StateOf {
    return ({ key, unit, pace, cap }, { swapped: { value, version, nowUs }, key: other }) => {
      const request = requests.find((each) => this.keyOf(each) === key)
      if (request === undefined || other !== key || version === undefined) return undefined
      let session = this.sessions.get(request.encoding)
      if (session === undefined) {
        session = new KeySession(request.encoding.policy, () => request.encoding.leaseUs)
        this.sessions.set(request.encoding, session)
      }
      const state = session.stepStateOf(decodedValue(value), nowUs)
      if (session.isHeld) throw new NoSteps('something is held of the key, which the columns of a step have no place for')
      return { version, state: { ...state, unit, pace, cap } }
    }
  }
}

function numbersOf({ policy, leaseUs, name }: { readonly policy: Policy; readonly leaseUs: number; readonly name: EncodingName }): Numbers {
  if (name !== 'rate') return { unit: Math.round(policy.windowMs * 1000), pace: 0, cap: policy.limit, lent: 0 }
  const { unitsPerToken, unitsPerUs, capacity } = emissionOf(policy)
  return { unit: unitsPerToken, pace: unitsPerUs, cap: capacity, lent: leaseUs * unitsPerUs }
}

/** No debt is deeper than what this wait is for. */
function longestWaitUs({ pace, cap }: Numbers): number {
  return pace === 0 ? MOST_US : Math.ceil((DEEPEST_DEBT_BURSTS * cap) / pace) + FURTHEST_US
}

/** The state after the step of the caller at `index` of several equal ones. */
function keyStateOf(verb: StepVerb, { tokens, encoding }: StepRequest, step: CasStep, stepped: CasStepped, index: number): KeyState {
  const { done, debt: last } = stepped
  const isTake = step.verb === 'take'
  const isDone = isTake ? index < done : done > 0
  const debt = isTake && isDone ? last - (done - 1 - index) * step.amount : last
  const asks = verb === 'take' || verb === 'peek' || (verb === 'reserve' && !isDone)
  const times = timesOf(step, stepped, debt, asks ? encoding.amountOf(tokens) : step.pace > 0 ? step.unit : 1)
  return { done: isDone, ...times }
}

/** As the scripts answer: of a rate the debt determines the rest. */
function timesOf(
  { pace, cap }: CasStep,
  { nowUs, state }: CasStepped,
  debt: number,
  amount: number,
): Pick<KeyState, 'debt' | 'blockedUs' | 'untilFreeUs' | 'untilNewUs' | 'waitUs'> {
  const blockedUs = Math.max(0, state.blocked - nowUs)
  if (pace > 0) return { debt, blockedUs, untilFreeUs: 0, untilNewUs: 0, waitUs: 0 }
  const closedUs = Math.max(0, state.at - nowUs)
  const leftUs = state.at + state.unit - nowUs
  const fits = debt + amount <= cap
  return {
    debt: closedUs > 0 ? cap : debt,
    blockedUs,
    untilFreeUs: fits ? closedUs : leftUs,
    untilNewUs: debt === 0 ? closedUs : leftUs,
    waitUs: closedUs,
  }
}
