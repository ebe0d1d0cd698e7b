import { PolicyError } from '../errors.js'
import type { CancelSignal } from '../shared/cancel-signal.js'
import type { CommandRunner } from './command-runner.js'
import { hashSlot } from './hash-slot.js'
import { runScript } from './run-script.js'
import { SCRIPTS } from './scripts.gen.js'
import type { StoreAnswer, StoreLease, StoreRequest, StoreVerb } from './store.js'
import type { StoreForm } from './store-form.js'
import type { StoreKeys } from './store-keys.js'
import { answerIn, leaseIn } from './store-reply.js'

/** Clients of glide put a colon after the code. */
const WRONG_WINDOW = /WINDOW:? (\d+)/

/** The state in Redis, moved by one script a call; what goes in and out of it is described in `lua/steps/parts.lua`. */
export class RedisStore {
  private readonly runner: CommandRunner
  private readonly keys: StoreKeys
  /** What the keys of a form begin with. */
  private readonly names = new WeakMap<StoreForm, string>()
  /** How far the store's clock is ahead of this one, as far as a calendar showed. */
  private aheadUs = 0
  /** Who asks about a key asks for its slot several times. */
  private lastKey: string | undefined
  private lastSlot = 0

  constructor(runner: CommandRunner, keys: StoreKeys) {
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

  ask(verb: StoreVerb, requests: readonly StoreRequest[], signal?: CancelSignal): Promise<StoreAnswer> {
    if (requests.length === 1) {
      const request = requests[0] as StoreRequest
      if (request.form.policy.calendar !== undefined) return this.inItsWindow(() => this.askOne(verb, request, signal), signal)
      return this.askOne(verb, request, signal)
    }
    const crossSlot = this.crossSlotFault(requests)
    if (crossSlot !== undefined) return Promise.reject(crossSlot)
    return this.inItsWindow(() => this.askAll(verb, requests, signal), signal)
  }

  lease(form: StoreForm, key: string, want: number, horizonUs: number, least: number, signal?: CancelSignal): Promise<StoreLease> {
    const script = SCRIPTS[`lease ${form.form}` as keyof typeof SCRIPTS]
    const names = [this.nameOf(form, key)]
    const amounts = `${want} ${horizonUs} ${least}`
    if (form.policy.calendar === undefined) {
      return runScript(this.runner, script, names, [form.numbersAt(this.storeUs()), amounts], leaseIn, signal)
    }
    return this.inItsWindow(() => runScript(this.runner, script, names, [form.numbersAt(this.storeUs()), amounts], leaseIn, signal), signal)
  }

  private storeUs(): number {
    return Date.now() * 1000 + this.aheadUs
  }

  /** Calls again when the script did nothing because the store's time is in a calendar window that it was not given. */
  private inItsWindow<Answer>(call: () => Promise<Answer>, signal: CancelSignal | undefined): Promise<Answer> {
    return call().catch((error) => {
      const storeUs = error instanceof Error ? WRONG_WINDOW.exec(error.message)?.[1] : undefined
      if (storeUs === undefined) throw error
      this.aheadUs = Number(storeUs) - Date.now() * 1000
      if (signal?.aborted === true) throw error
      return call()
    })
  }

  private askOne(verb: StoreVerb, request: StoreRequest, signal: CancelSignal | undefined): Promise<StoreAnswer> {
    const { form, key } = request
    const args = [form.numbersAt(this.storeUs()), requestText(verb, request)]
    if (verb !== 'take') args.push(verb)
    return runScript(this.runner, SCRIPTS[form.form], [this.nameOf(form, key)], args, answerOfOne, signal)
  }

  private askAll(verb: StoreVerb, requests: readonly StoreRequest[], signal: CancelSignal | undefined): Promise<StoreAnswer> {
    const keys: string[] = []
    const args: string[] = [verb]
    for (const request of requests) {
      const { form, key } = request
      keys.push(this.nameOf(form, key))
      args.push(form.form, form.numbersAt(this.storeUs()), requestText(verb, request))
    }
    return runScript(this.runner, SCRIPTS['all-of'], keys, args, (reply) => answerIn(reply, requests.length), signal)
  }

  private nameOf(form: StoreForm, key: string): string {
    let before = this.names.get(form)
    if (before === undefined) {
      before = this.keys.before(form.form, form.policy.name)
      this.names.set(form, before)
    }
    return before + this.keys.after(key)
  }

  private crossSlotFault(requests: readonly StoreRequest[]): PolicyError | undefined {
    if (!this.runner.isCluster) return undefined
    if (new Set(requests.map(({ key }) => this.slotOf(key))).size === 1) return undefined
    const tags = [...new Set(requests.map(({ key }) => this.keys.tagOf(key)))]
    const mend = 'have no hash slot in common, so no server could charge them together: give hashTag, or the same key for all'
    return new PolicyError('CROSS_SLOT', 'key', tags, mend)
  }
}

function answerOfOne(reply: unknown): StoreAnswer {
  return answerIn(reply, 1)
}

/** `<amount>`, or `<amount> <bound> <more>`. */
function requestText(verb: StoreVerb, request: StoreRequest): string {
  const { form, tokens, mostUs, booking } = request
  const amount = String(verb === 'block' ? tokens : form.amountOf(tokens))
  const more = moreOf(request)
  if (mostUs === undefined && booking === undefined && more === '') return amount
  return `${amount} ${booking?.atUs ?? mostUs ?? 0} ${more}`
}

function moreOf({ form, booking, permit = '' }: StoreRequest): string {
  if (form.form === 'concurrency') return booking === undefined ? permit : `${permit} ${booking.cost}`
  if (form.form !== 'rate' || booking === undefined) return ''
  return `${booking.debt} ${form.amountOf(booking.cost)} ${booking.bookedUs}`
}
