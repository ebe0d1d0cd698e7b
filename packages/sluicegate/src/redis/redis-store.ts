import { PolicyError, StoreError } from '../errors.js'
import { hashSlot } from './hash-slot.js'
import { runScript } from './run-script.js'
import type { ScriptRunner } from './script-runner.js'
import { SCRIPTS } from './scripts.gen.js'
import type { Store, StoreAnswer, StoreLease, StoreRequest, StoreStanding, StoreVerb } from './store.js'
import type { StoreForm } from './store-form.js'
import type { StoreKeys, StoreNames } from './store-keys.js'

const NUMBERS = 7
const ANSWERS = 6
const LEASE_ANSWERS = 9
const WRONG_WINDOW = /WINDOW (\d+)/

/** The state in Redis, moved by one script a call; what goes in and out of it is described in `lua/steps/parts.lua`. */
export class RedisStore implements Store {
  private readonly runner: ScriptRunner
  private readonly keys: StoreKeys
  private readonly names = new WeakMap<StoreForm, StoreNames>()
  /** How far the store's clock is ahead of this one, as far as a calendar showed. */
  private aheadUs = 0
  /** Who asks about a key asks for its slot several times. */
  private lastKey: string | undefined
  private lastSlot = 0

  constructor(runner: ScriptRunner, keys: StoreKeys) {
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

  async ask(verb: StoreVerb, requests: readonly StoreRequest[]): Promise<StoreAnswer> {
    this.checkSlots(requests)
    return answerIn(await this.inItsWindow(() => this.run(verb, requests)), requests.length)
  }

  async lease(form: StoreForm, key: string, want: number, horizonUs: number, least: number): Promise<StoreLease> {
    const { state, block } = this.namesOf(form)
    const after = this.keys.after(key)
    const args = ['lease', String(least), form.form, String(want), String(horizonUs), ...form.numbersAt(this.storeUs())]
    const script = SCRIPTS[`lease ${form.form}` as keyof typeof SCRIPTS]
    return this.inItsWindow(async () => leaseIn(await runScript(this.runner, script, [state + after, block + after], args)))
  }

  private storeUs(): number {
    return Date.now() * 1000 + this.aheadUs
  }

  /** Once more, when nothing was done because the store's time is in a window of the calendar that it was not told of. */
  private async inItsWindow<Answer>(call: () => Promise<Answer>): Promise<Answer> {
    try {
      return await call()
    } catch (error) {
      const storeUs = error instanceof Error ? WRONG_WINDOW.exec(error.message)?.[1] : undefined
      if (storeUs === undefined) throw error
      this.aheadUs = Number(storeUs) - Date.now() * 1000
      return call()
    }
  }

  private run(verb: StoreVerb, requests: readonly StoreRequest[]): Promise<unknown> {
    const script = SCRIPTS[requests.length === 1 ? (requests[0] as StoreRequest).form.form : 'all-of']
    const keys: string[] = []
    const args: string[] = [verb]
    for (const request of requests) {
      const { state, block } = this.namesOf(request.form)
      const after = this.keys.after(request.key)
      keys.push(state + after, block + after)
      this.addArguments(args, verb, request)
    }
    return runScript(this.runner, script, keys, args)
  }

  private addArguments(args: string[], verb: StoreVerb, { form, tokens, mostUs, booking, permit }: StoreRequest): void {
    const amount = verb === 'block' ? tokens : form.amountOf(tokens)
    args.push(form.form, String(amount), String(booking?.atUs ?? mostUs ?? 0))
    const end = args.length + NUMBERS
    args.push(...form.numbersAt(this.storeUs()))
    if (permit !== undefined && form.form === 'concurrency') args.push(permit)
    if (booking !== undefined && form.form === 'rate')
      args.push(String(booking.debt), String(form.amountOf(booking.cost)), String(booking.bookedUs))
    else if (booking !== undefined && form.form === 'concurrency') args.push(String(booking.cost))
    while (args.length < end) args.push('')
  }

  private namesOf(form: StoreForm): StoreNames {
    let names = this.names.get(form)
    if (names === undefined) {
      names = this.keys.before(form.form, form.name ?? form.policy.name)
      this.names.set(form, names)
    }
    return names
  }

  private checkSlots(requests: readonly StoreRequest[]): void {
    if (!this.runner.isCluster || requests.length === 1) return
    const [first, ...others] = new Set(requests.map(({ key }) => this.keys.tagOf(key)))
    if (others.length === 0) return
    const mend = 'have no hash slot in common, so no server could charge them together: give hashTag, or the same key for all'
    throw new PolicyError('CROSS_SLOT', 'key', [first, ...others], mend)
  }
}

function answerIn(reply: unknown, count: number): StoreAnswer {
  if (!Array.isArray(reply) || reply.length !== 1 + ANSWERS * count) throw new StoreError('OUTAGE', `the store answered ${typeof reply}`)
  const standings: StoreStanding[] = []
  for (let at = 1; at < reply.length; at += ANSWERS) {
    standings.push({
      done: Number(reply[at]) === 1,
      debt: Number(reply[at + 1]),
      blockedUs: Number(reply[at + 2]),
      untilFreeUs: Number(reply[at + 3]),
      untilNewUs: Number(reply[at + 4]),
      waitUs: Number(reply[at + 5]),
    })
  }
  return { nowUs: Number(reply[0]), standings }
}

function leaseIn(reply: unknown): StoreLease {
  if (!Array.isArray(reply) || reply.length !== LEASE_ANSWERS) throw new StoreError('OUTAGE', `the store answered ${typeof reply}`)
  const [, ready = 0, later = 0, debt = 0, blockedUs = 0, untilFreeUs = 0, untilNewUs = 0, laterUs = 0, endUs = 0] = reply.map(Number)
  return { ready, later, debt, blockedUs, untilFreeUs, untilNewUs, laterUs, endUs }
}
