import type { Call } from './call.js'
import type { ExploredCore, ExploredKey } from './explored-core.js'
import type { PolicyRecords } from './explored-policy.js'
import { type ExploredPolicy, isRate } from './explored-policy.js'
import type { SavedNumbers } from './proof-tables.js'

const MOST_ATTEMPTS = 100
/** No order explains it. */
const GAVE_UP = Number.NEGATIVE_INFINITY

/** Of all that is booked before the first update. */
const FIRST_GENERATION = 0

/** A permit in a thread's hands. */
export interface GivenPermit {
  /** What the core knows it by. */
  readonly given: number
  readonly untilUs: number
}

/** What the calls of a thread have to do with. */
export interface CallContext {
  readonly core: ExploredCore
  readonly keys: readonly ExploredKey[]
  readonly blocks: PolicyRecords
  /** Of the key that is saved or loaded. */
  readonly numbers: SavedNumbers
  /** The permits that were given before the start. */
  readonly founded: readonly GivenPermit[]
  /** The policy at the start; later ones are of the same algorithm. */
  readonly policy: ExploredPolicy
  /** Whether the core has just been suspended: what it answered means nothing, and the same call into it has to be made again. */
  readonly isSuspended: () => boolean
}

/**
 * One call of a script, that can be suspended in the middle: it is run again from its top, and goes on with the call into the core
 * that it was suspended in.
 */
export class ExploredCall {
  /** What it returned beside its answer; NaN for nothing. */
  more = Number.NaN
  /** The permit that it is about, or has given. */
  permit: GivenPermit | undefined
  private readonly call: Call
  private readonly context: CallContext
  private readonly script: () => number
  /** How many calls into the core are done, and what they answered. */
  private step = 0
  private attempts = 0
  private readonly answers: number[] = []
  /** Of the policy that an update follows. */
  private seenEpoch = 0

  constructor(call: Call, context: CallContext) {
    this.call = call
    this.context = context
    this.script = this.scriptOf(call)
  }

  reset(): void {
    this.step = 0
    this.attempts = 0
    this.permit = undefined
  }

  /** @param held the permit that the thread was given last. */
  run(held: GivenPermit | undefined): number {
    const { nth } = this.call
    if (this.step === 0) this.permit = nth === undefined ? held : this.context.founded[nth]
    this.more = Number.NaN
    return this.script()
  }

  /** Makes call number `i` into the core, unless it is made. True: suspended in it. */
  private makes(i: number, call: () => number): boolean {
    if (this.step > i) return false
    const answer = call()
    if (this.context.isSuspended()) return true
    this.answers[i] = answer
    this.step = i + 1
    return false
  }

  private scriptOf(call: Call): () => number {
    const { core } = this.context
    const { verb, nowUs, amount, bound = 0 } = call
    const { low, high } = this.keyOf(call.key)
    switch (verb) {
      case 'peek':
        return () => this.peeked(core.peek(low, high, nowUs, 0))
      case 'reset':
        return () => core.reset(low, high, nowUs)
      case 'refund':
      case 'penalize':
        return () => core[verb](low, high, nowUs, amount)
      case 'block':
        return () => core.ban(low, high, nowUs, amount)
      case 'take':
        if (isRate(this.context.policy)) return () => core.take(low, high, nowUs, amount)
        return () => this.given(core.takeAny(low, high, nowUs, amount))
      case 'reserve':
        return () => this.reserved(core.reserve(low, high, nowUs, amount, bound))
      case 'cancel':
        return () => core.cancel(low, high, nowUs, amount, bound, FIRST_GENERATION)
      case 'release':
      case 'heartbeat':
        return () => this.permitChanged(low, high, nowUs, verb === 'release')
      case 'save':
        return () => this.saved(core.saveKey(low, high, nowUs, 1))
      case 'load':
        return () => this.loaded(low, high)
      case 'open':
        return () => this.workOpened(low, high)
      case 'add':
      case 'finish':
        return () => core.spendHold(0, low, high, nowUs, amount, call.rest ?? 0, bound, this.permit?.given ?? 0, verb === 'add' ? 0 : 2)
      case 'renew':
        return () => core.renewHold(low, high, nowUs, call.rest ?? 0, bound, call.toUs ?? 0, this.permit?.given ?? 0)
      case 'takeBoth':
        return () => this.bothTaken(this.keyOf(call.key), this.keyOf(call.other ?? 0), nowUs, amount)
      default:
        return () => this.updated(nowUs)
    }
  }

  private keyOf(key: number): ExploredKey {
    return this.context.keys[key] ?? { low: 0, high: 0 }
  }

  private given(answer: number): number {
    const { core, isSuspended, policy } = this.context
    if (isSuspended()) return answer
    if (policy.encoding === 'CONCURRENCY') {
      if (answer < 0) return answer
      this.permit = { given: core.givenPermit(), untilUs: core.givenUntilUs() }
      this.more = this.permit.untilUs
    } else if (policy.encoding !== 'LOG' && !Number.isNaN(answer))
      this.more = answer < 0 ? core.untilFree(this.call.amount) : core.untilNew()
    return answer
  }

  /** Of buckets and GCRA with what is held. */
  private peeked(answer: number): number {
    const { core, isSuspended, policy } = this.context
    if (isSuspended() || !isRate(policy)) return answer
    const isHeld = Number.isNaN(answer) && core.whyUnanswered() === core.HELD.value
    this.more = isHeld ? core.heldTokens() : 0
    return answer
  }

  /** As the limiter opens work. */
  private workOpened(low: number, high: number): number {
    const { core, isSuspended } = this.context
    const { nowUs, amount, bound = 0 } = this.call
    const { answers } = this
    while (this.attempts < MOST_ATTEMPTS) {
      if (this.makes(0, () => core.prepareHold(low, high, nowUs, bound))) return 0
      if (Number.isNaN(answers[0]) && core.whyUnanswered() !== core.EVICTED.value) return Number.NaN
      if (this.step === 1 && Number.isNaN(answers[0])) answers[0] = core.detailOfUnanswered()
      const endUs = answers[0] as number
      if (this.makes(1, () => core.openDescriptor())) return 0
      const descriptor = answers[1] as number
      if (this.makes(2, () => core.stageHold(descriptor, low, high, nowUs, amount, endUs))) return 0
      const staged = answers[2] as number
      if (staged >= 0) {
        const ring = core.ringOpened()
        if (this.makes(3, () => core.commit(descriptor))) return 0
        if (answers[3] !== 0) {
          this.permit = { given: ring, untilUs: endUs }
          return staged
        }
      } else {
        const why = core.whyUnanswered()
        const detail = core.detailOfUnanswered()
        if (this.makes(3, () => this.closed(descriptor))) return 0
        if (isSuspended()) return 0
        if (Number.isNaN(staged)) return why === core.HELD.value || why === core.LATE.value ? detail : staged
        if (staged !== Number.NEGATIVE_INFINITY) return staged
      }
      this.step = 0
      this.attempts++
    }
    return GAVE_UP
  }

  private saved(answer: number): number {
    const { isSuspended, numbers } = this.context
    return isSuspended() || answer !== 1 ? answer : numbers.debtAt(this.call.nowUs)
  }

  private loaded(low: number, high: number): number {
    const { core, isSuspended, numbers, policy } = this.context
    numbers.give(policy, this.call.nowUs, this.call.amount * policy.unitsPerToken)
    const answer = core.loadKey(low, high, this.call.nowUs)
    return isSuspended() || answer !== 1 ? answer : 0
  }

  private reserved(answer: number): number {
    const { core, isSuspended, policy } = this.context
    // Of buckets and GCRA the debt says it.
    if (!isSuspended() && answer >= 0 && !isRate(policy)) this.more = core.waitUs()
    return answer
  }

  private permitChanged(low: number, high: number, nowUs: number, isRelease: boolean): number {
    const { permit, context } = this
    if (permit === undefined) return 0
    const { core, isSuspended } = context
    const done = core.changePermit(low, high, nowUs, !isRelease, permit.given, permit.untilUs, isRelease ? this.call.amount : 0)
    return isSuspended() || done === 0 ? done : core.givenUntilUs()
  }

  /** As the limiter of several policies does it. */
  private bothTaken(one: ExploredKey, other: ExploredKey, nowUs: number, amount: number): number {
    const { core } = this.context
    const { answers } = this
    while (this.attempts < MOST_ATTEMPTS) {
      if (this.makes(0, () => core.openDescriptor())) return 0
      const descriptor = answers[0] as number
      if (descriptor === 0) throw new Error('no descriptor was free')
      if (this.makes(1, () => this.staged(descriptor, one, nowUs, amount))) return 0
      if (this.makes(2, () => this.staged(descriptor, other, nowUs, amount))) return 0
      const [, first, second] = answers as [number, number, number]
      if (first < 0 || second < 0) {
        if (this.makes(3, () => this.closed(descriptor))) return 0
        this.more = first < 0 ? 0 : 1
        return Math.min(first, 0) || second
      }
      if (this.makes(3, () => core.commit(descriptor))) return 0
      this.more = second
      if (answers[3] !== 0) return first
      this.step = 0
      this.attempts++
    }
    return GAVE_UP
  }

  private staged(descriptor: number, { low, high }: ExploredKey, nowUs: number, amount: number): number {
    const { core, isSuspended } = this.context
    const answer = core.stage(descriptor, low, high, nowUs, amount)
    if (!Number.isNaN(answer) || isSuspended()) return answer
    const why = core.whyUnanswered()
    if (why === core.EVICTED.value) return core.detailOfUnanswered()
    if (why === core.LATE.value) return -1 - core.detailOfUnanswered()
    throw new Error('a take of two keys was given no answer')
  }

  private closed(descriptor: number): number {
    this.context.core.closeDescriptor(descriptor)
    return 0
  }

  /** As the limiter publishes a policy. */
  private updated(nowUs: number): number {
    const { core } = this.context
    const { policy } = this.call
    if (policy === undefined) throw new Error('an update needs a policy')
    while (true) {
      if (this.makes(0, () => this.looked())) return 0
      if (this.makes(1, () => core.propose())) return 0
      const [seen, block] = this.answers as [number, number]
      if (this.makes(2, () => this.counted(block, policy, seen))) return 0
      if (this.makes(3, () => core.update(block, nowUs, this.seenEpoch))) return 0
      if (this.answers[3] !== 0) return 0
      this.step = 0
    }
  }

  private counted(block: number, policy: ExploredPolicy, seen: number): number {
    const { blocks } = this.context
    const before = blocks.read(seen)
    this.seenEpoch = blocks.epochOf(seen)
    blocks.write(block, policy, blocks.next(policy, before))
    return 0
  }

  private looked(): number {
    const { core, isSuspended } = this.context
    core.look()
    return isSuspended() ? 0 : core.policyRecord()
  }
}
