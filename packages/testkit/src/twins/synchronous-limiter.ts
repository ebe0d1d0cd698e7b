import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { denials } from '../../../sluicegate/dist/decision/diagnostics.js'
import type { Permit } from '../../../sluicegate/dist/decision/permit.js'
import type { Reservation } from '../../../sluicegate/dist/decision/reservation.js'
import { PolicyError, type PolicyErrorCode, StoreError, type StoreErrorCode } from '../../../sluicegate/dist/errors.js'
import type { BoundKey, Key, Limiter, LimiterStats } from '../../../sluicegate/dist/limiter.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { RedisLimiterOptions } from '../../../sluicegate/dist/redis/create-redis-limiter.js'
import type { ManualClock } from '../../../sluicegate/dist/time/clock.js'
import { type HostStart, type LimiterAnswer, type LimiterCall, type LimiterFailure, type LimiterMessage, SYMBOL } from './limiter-calls.js'

const LONGEST_MS = 60_000

/**
 * Limiters over a store for a suite that expects each answer at once: a thread hosts them and its client, and this one sleeps until it has
 * answered. The scripts and the clock there are at the time of the clock here.
 */
export class LimiterHost {
  private readonly worker: Worker
  private readonly calls: MessagePort
  private readonly cell: Int32Array
  private limiters = 0

  constructor(url: string) {
    const { port1, port2 } = new MessageChannel()
    const answered = new SharedArrayBuffer(4)
    const start: HostStart = { url, calls: port2, answered }
    this.calls = port1
    this.cell = new Int32Array(answered)
    this.worker = new Worker(new URL('./limiter-host.js', import.meta.url), { workerData: start, transferList: [port2] })
    this.worker.unref()
    this.untilAnswered()
  }

  make(policy: Policy, options: Omit<RedisLimiterOptions, 'client'>, clock: ManualClock): Limiter {
    const name = `limiter ${++this.limiters}`
    this.ask({ make: name, policy, options }, [])
    return new SynchronousLimiter({ host: this, name, clock }) as unknown as Limiter
  }

  /** @param args those of the call, as the caller gave them. */
  ask(call: LimiterCall, args: readonly unknown[]): Exclude<LimiterAnswer, { name: string }> {
    this.calls.postMessage(call)
    this.untilAnswered()
    const { message } = receiveMessageOnPort(this.calls) as { readonly message: LimiterMessage }
    const { answer } = message
    for (const denial of message.denials) denials.publish(denial)
    if ('name' in answer) throw errorIn(answer, args)
    return answer
  }

  async stop(): Promise<void> {
    this.calls.close()
    await this.worker.terminate()
  }

  private untilAnswered(): void {
    // The call that wakes may be late, and of the answer before.
    while (Atomics.exchange(this.cell, 0, 0) === 0) {
      if (Atomics.wait(this.cell, 0, 0, LONGEST_MS) === 'timed-out') throw new Error(`no answer within ${LONGEST_MS} ms`)
    }
  }
}

function errorIn({ name, code, option, message, argument = -1, value }: LimiterFailure, args: readonly unknown[]): Error {
  if (name === 'StoreError') return new StoreError(code as StoreErrorCode, message)
  if (name !== 'PolicyError' || option === undefined) return new Error(message)
  return new PolicyError(
    code as PolicyErrorCode,
    option,
    argument < 0 ? value : args[argument],
    message.slice(option.length + 2).replace(/ \(got .*$/s, ''),
  )
}

/** What of {@link Limiter} a limiter over a store has, each verb answered at once. */
class SynchronousLimiter {
  private readonly at: { readonly host: LimiterHost; readonly name: string; readonly clock: ManualClock }

  constructor(at: SynchronousLimiter['at']) {
    this.at = at
  }

  get policy(): Policy {
    return this.call('policy') as unknown as Policy
  }

  take(key: Key, cost?: number): Decision {
    return this.call('take', key, cost)
  }

  peek(key: Key, cost?: number): Decision {
    return this.call('peek', key, cost)
  }

  refund(key: Key, tokens: number): Decision {
    return this.call('refund', key, tokens)
  }

  penalize(key: Key, tokens: number): Decision {
    return this.call('penalize', key, tokens)
  }

  block(key: Key, duration: number): Decision {
    return this.call('block', key, duration)
  }

  reset(key: Key): Decision {
    return this.call('reset', key)
  }

  reserve(key: Key, cost: number): Reservation {
    return this.call('reserve', key, cost) as unknown as Reservation
  }

  key(key: Key): BoundKey {
    this.call('key', key)
    return { key, take: (cost) => this.call('key.take', key, cost), peek: (cost) => this.call('key.peek', key, cost) }
  }

  update(policy: Policy): void {
    this.call('update', policy)
  }

  hotKeys(n?: number): unknown {
    return this.call('hotKeys', n)
  }

  /** Of a table there is none here. */
  stats(): LimiterStats {
    this.call('stats')
    const { host, name, clock } = this.at
    const answer = host.ask({ limiter: name, nowMs: clock.nowMs(), count: 'keys' }, [])
    const keys = 'value' in answer ? (answer.value as number) : 0
    return { decisions: {}, keys, evictions: 0, refusals: 0, overflows: 0, casRetries: 0, contentions: 0, memoryBytes: 0 }
  }

  /** What only memory has, for the tests of what is closed. */
  snapshot(): never {
    this.call('stats')
    throw new Error('a store has no snapshot')
  }

  handle(): never {
    return this.snapshot()
  }

  close(): void {
    this.call('close')
  }

  [Symbol.dispose](): void {
    this.close()
  }

  private call(verb: string, ...args: readonly unknown[]): Decision {
    const { host, name, clock } = this.at
    return this.read(host.ask({ limiter: name, nowMs: clock.nowMs(), verb, args: clonable(args) }, args)) as Decision
  }

  private later(of: number, verb: string, ...args: readonly unknown[]): unknown {
    const { host, clock } = this.at
    return this.read(host.ask({ of, nowMs: clock.nowMs(), verb, args: clonable(args) }, args))
  }

  private read(answer: Exclude<LimiterAnswer, { name: string }>): unknown {
    if ('permit' in answer) return this.permit(answer.permit, answer.decision)
    if (!('booking' in answer)) return answer.value
    const { booking, allowed, waitMs, decision } = answer
    const settle = (actual: number): Decision => this.later(booking, 'settle', actual) as Decision
    return { allowed, waitMs, decision, settle, cancel: () => this.later(booking, 'cancel') as Decision } satisfies Reservation
  }

  private permit(of: number, decision: Decision): Permit {
    const release = (): boolean => this.later(of, 'release') as boolean
    const heartbeat = (): boolean => this.later(of, 'heartbeat') as boolean
    return Object.defineProperties({ ...decision } as Permit, {
      release: { value: release },
      heartbeat: { value: heartbeat },
      [Symbol.dispose]: { value: release },
    })
  }
}

function clonable(args: readonly unknown[]): readonly unknown[] {
  return args.map((arg) => (typeof arg === 'symbol' ? SYMBOL : arg))
}
