import { PolicyError } from '../errors.js'
import type { CancelSignal, HoldOperation } from '../shared/backend.js'
import type { PolicyEncoding } from '../shared/steps/policy-encoding.js'
import {
  answerIn,
  heldIn,
  leaseIn,
  type StepAnswer,
  type StepHeld,
  type StepLease,
  type StepRequest,
  type StepVerb,
} from '../shared/steps/step-answers.js'
import type { ComputingStore } from '../shared/steps/step-backend.js'
import type { CommandRunner } from './command-runner.js'
import { countNodes } from './node-count.js'
import { hashSlot, type RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { SCRIPTS } from './scripts.gen.js'

/** glide puts a colon after the code. */
const WRONG_WINDOW = /WINDOW:? (\d+)/

/** The scripts as functions: each call runs one. `lua/steps/parts.lua` documents their KEYS, ARGV and reply. */
export class RedisScripts implements ComputingStore {
  private readonly runner: CommandRunner
  private readonly keys: RedisKeys
  /** The beginning of the keys of each encoding. */
  private readonly names = new WeakMap<PolicyEncoding, string>()
  /** How far the server's clock is ahead of this one, as far as a calendar window showed. */
  private aheadUs = 0
  /** One operation reads the slot of its key several times. */
  private lastKey: string | undefined
  private lastSlot = 0

  constructor(runner: CommandRunner, keys: RedisKeys) {
    this.runner = runner
    this.keys = keys
  }

  serverOf(key: string): string | undefined {
    const slot = this.slotOf(key)
    return slot === undefined ? undefined : this.runner.serverOf(slot)
  }

  slotOf(key: string): number | undefined {
    if (!this.runner.isCluster) return undefined
    if (key !== this.lastKey) {
      this.lastSlot = hashSlot(this.keys.hashedOf(key))
      this.lastKey = key
    }
    return this.lastSlot
  }

  ask(verb: StepVerb, requests: readonly StepRequest[], signal?: CancelSignal): Promise<StepAnswer> {
    if (requests.length === 1) {
      const request = requests[0] as StepRequest
      if (request.encoding.policy.calendar !== undefined) return this.inItsWindow(() => this.askOne(verb, request, signal), signal)
      return this.askOne(verb, request, signal)
    }
    const crossSlot = this.crossSlotFault(requests.map(({ key }) => key))
    if (crossSlot !== undefined) return Promise.reject(crossSlot)
    return this.inItsWindow(() => this.askAll(verb, requests, signal), signal)
  }

  lease(encoding: PolicyEncoding, key: string, want: number, least: number, signal?: CancelSignal): Promise<StepLease> {
    const script = SCRIPTS[`lease ${encoding.name}` as keyof typeof SCRIPTS]
    const names = [this.nameOf(encoding, key)]
    const amounts = `${want} ${least}`
    if (encoding.policy.calendar === undefined) {
      return runScript(this.runner, script, names, [encoding.numbersAt(this.storeUs()), amounts], leaseIn, signal)
    }
    return this.inItsWindow(
      () => runScript(this.runner, script, names, [encoding.numbersAt(this.storeUs()), amounts], leaseIn, signal),
      signal,
    )
  }

  hold(encodings: readonly PolicyEncoding[], keys: readonly string[], operation: HoldOperation, signal?: CancelSignal): Promise<StepHeld> {
    const crossSlot = this.crossSlotFault(keys)
    if (crossSlot !== undefined) return Promise.reject(crossSlot)
    const { record } = operation
    const names = keys.map((key, i) => this.nameOf(encodings[i] as PolicyEncoding, key))
    if (record !== undefined)
      names.push(`${this.keys.before('hold', encodings[0]?.storedName as string)}${record.id}:${this.keys.after(keys[0] as string)}`)
    const call = (): Promise<StepHeld> => {
      const args = [stepText(operation)]
      for (const encoding of encodings) args.push(encoding.name, encoding.numbersAt(this.storeUs()), heldText(operation, encoding))
      return runScript(this.runner, SCRIPTS.hold, names, args, (reply) => heldIn(reply, encodings.length), signal)
    }
    return this.inItsWindow(call, signal)
  }

  /** How many limiters share these policies, as {@link countNodes} says. */
  countNodes(policies: readonly string[], id: string): Promise<number> {
    return countNodes(this.runner, this.keys, policies, id)
  }

  private storeUs(): number {
    return Date.now() * 1000 + this.aheadUs
  }

  /** Calls again when the script did nothing because the server's time is in a calendar window that it did not get. */
  private inItsWindow<Answer>(call: () => Promise<Answer>, signal: CancelSignal | undefined): Promise<Answer> {
    return call().catch((error) => {
      const storeUs = error instanceof Error ? WRONG_WINDOW.exec(error.message)?.[1] : undefined
      if (storeUs === undefined) throw error
      this.aheadUs = Number(storeUs) - Date.now() * 1000
      if (signal?.aborted === true) throw error
      return call()
    })
  }

  private askOne(verb: StepVerb, request: StepRequest, signal: CancelSignal | undefined): Promise<StepAnswer> {
    const { encoding, key } = request
    const args = [encoding.numbersAt(this.storeUs()), requestText(verb, request)]
    if (verb !== 'take') args.push(verb)
    return runScript(this.runner, SCRIPTS[encoding.name], [this.nameOf(encoding, key)], args, answerOfOne, signal)
  }

  private askAll(verb: StepVerb, requests: readonly StepRequest[], signal: CancelSignal | undefined): Promise<StepAnswer> {
    const keys: string[] = []
    const args: string[] = [verb]
    for (const request of requests) {
      const { encoding, key } = request
      keys.push(this.nameOf(encoding, key))
      args.push(encoding.name, encoding.numbersAt(this.storeUs()), requestText(verb, request))
    }
    return runScript(this.runner, SCRIPTS['all-of'], keys, args, (reply) => answerIn(reply, requests.length), signal)
  }

  private nameOf(encoding: PolicyEncoding, key: string): string {
    let before = this.names.get(encoding)
    if (before === undefined) {
      before = this.keys.before(encoding.name, encoding.storedName)
      this.names.set(encoding, before)
    }
    return before + this.keys.after(key)
  }

  private crossSlotFault(keys: readonly string[]): PolicyError | undefined {
    if (!this.runner.isCluster) return undefined
    if (new Set(keys.map((key) => this.slotOf(key))).size === 1) return undefined
    const tags = [...new Set(keys.map((key) => this.keys.tagOf(key)))]
    const mend = 'have no hash slot in common, so no server could charge them together: give hashTag, or the same key for all'
    return new PolicyError('CROSS_SLOT', 'key', tags, mend)
  }
}

function answerOfOne(reply: unknown): StepAnswer {
  return answerIn(reply, 1)
}

/** What `lua/scripts/hold.lua` calls the step. */
function stepText({ ttlUs, hold, want, least, isDebt, record, spent, count = 1 }: HoldOperation): string {
  const { call = -1, most = -1, total = -1, waits = false } = record ?? {}
  return [ttlUs, hold === 'rest' ? -1 : hold, want, least, isDebt ? 1 : waits ? 2 : 0, call, most, total, spent, count].join(' ')
}

function heldText({ before, spent, record }: HoldOperation, { mostTokens }: PolicyEncoding): string {
  const tokens = Math.min(record?.total ?? spent, mostTokens)
  return before === undefined || before.state === undefined
    ? String(tokens)
    : `${tokens} 0 ${before.state} ${before.rest} ${before.granted}`
}

/** `<amount>`, or `<amount> <bound> <more>`. */
function requestText(verb: StepVerb, request: StepRequest): string {
  const { encoding, tokens, mostUs, booking } = request
  const amount = String(verb === 'block' ? tokens : encoding.amountOf(tokens))
  const more = moreOf(request)
  if (mostUs === undefined && booking === undefined && more === '') return amount
  return `${amount} ${booking?.atUs ?? mostUs ?? 0} ${more}`
}

function moreOf({ encoding, booking, permit = '' }: StepRequest): string {
  if (encoding.name === 'concurrency') return booking === undefined ? permit : `${permit} ${booking.cost}`
  if (encoding.name !== 'rate' || booking === undefined) return ''
  return `${booking.debt} ${encoding.amountOf(booking.cost)} ${booking.bookedUs}`
}
