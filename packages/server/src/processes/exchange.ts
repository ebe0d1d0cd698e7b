import { PolicyError, StoreError } from 'sluicegate'
import { ConfigError } from 'sluicegate-config/fault.js'
import { TooManyHeldError } from '../engine/held-by-id.js'

/** What marks messages of the service on a channel that others may use too. */
const MARK = 'sluicegate:service'
/** How long a call waits for its answer. A snapshot of a large table stops the primary process for most of a second. */
const CALL_MS = 2_000
/** How often calls without an answer are looked at. */
const LOOK_MS = 100
/** Calls without an answer; more are refused at once, so that a process that has stopped cannot fill the memory of another one. */
const MAX_UNANSWERED = 65_536

type Call = readonly [id: number, method: string, args: readonly unknown[], untilMs: number]
type Answer = readonly [id: number, value: unknown, fault?: Fault]
/** All calls and answers of one turn of the event loop. */
type Batch = readonly [mark: typeof MARK, calls: readonly Call[], answers: readonly Answer[]]

/** An error of the other process that its caller distinguishes. */
interface Fault {
  readonly kind: 'policy' | 'store' | 'config' | 'range' | 'held' | 'other'
  readonly message: string
  readonly code?: string
  readonly option?: string
}

/** The methods that a process answers, each with a value or a promise. */
export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>

/** Options of one call. */
export interface CallOptions {
  /** Default 2,000. */
  readonly timeoutMs?: number
}

interface Unanswered {
  /** Undefined when the call has been rejected. */
  settle: { resolve(value: unknown): void; reject(error: Error): void } | undefined
  readonly untilMs: number
}

/**
 * Calls between two processes, in both directions, over the channel between them: one message for all calls and answers of a turn. They start,
 * reload, watch and stop workers. Decisions go over `sluicegate/cluster`, but for those whose rate comes with the call.
 */
export class Exchange {
  readonly #send: (message: object) => void
  readonly #methods: Methods
  readonly #unanswered = new Map<number, Unanswered>()
  #calls: Call[] = []
  #answers: Answer[] = []
  #nextId = 1
  #looking: NodeJS.Timeout | undefined
  #isScheduled = false
  #isClosed = false

  constructor(send: (message: object) => void, methods: Methods) {
    this.#send = send
    this.#methods = methods
  }

  /**
   * Rejects with the error of the method, or with `StoreError` `OUTAGE` when the other process ends or does not answer in time. It does not begin a call
   * whose time is over.
   */
  call<Value>(method: string, ...args: readonly unknown[]): Promise<Value> {
    return this.callWith({}, method, ...args)
  }

  /** {@link Exchange.call} with options. */
  callWith<Value>({ timeoutMs = CALL_MS }: CallOptions, method: string, ...args: readonly unknown[]): Promise<Value> {
    if (this.#isClosed) return Promise.reject(gone())
    if (this.#unanswered.size >= MAX_UNANSWERED) return Promise.reject(late())
    const id = this.#nextId++
    const untilMs = machineMs() + timeoutMs
    this.#calls.push([id, method, args, untilMs])
    this.#schedule()
    this.#looking ??= setInterval(() => this.#rejectLate(), LOOK_MS)
    return new Promise((resolve, reject) => {
      this.#unanswered.set(id, { settle: { resolve: resolve as (value: unknown) => void, reject }, untilMs })
    })
  }

  /** Takes a message of the other process; others are ignored. */
  receive(message: unknown): void {
    if (!Array.isArray(message) || message[0] !== MARK) return
    const [, calls, answers] = message as unknown as Batch
    for (const answer of answers) this.#take(answer)
    const nowMs = calls.length > 0 ? machineMs() : 0
    for (const call of calls) this.#answer(call, nowMs)
  }

  /** The other process has ended. */
  close(): void {
    this.#isClosed = true
    clearInterval(this.#looking)
    for (const { settle } of this.#unanswered.values()) settle?.reject(gone())
    this.#unanswered.clear()
  }

  #take([id, value, fault]: Answer): void {
    const entry = this.#unanswered.get(id)
    this.#unanswered.delete(id)
    if (fault === undefined) entry?.settle?.resolve(value)
    else entry?.settle?.reject(errorOf(fault))
  }

  #rejectLate(): void {
    const nowMs = machineMs()
    let areWaiting = false
    for (const entry of this.#unanswered.values()) {
      if (entry.settle === undefined) continue
      if (entry.untilMs > nowMs) areWaiting = true
      else {
        entry.settle.reject(late())
        entry.settle = undefined
      }
    }
    if (areWaiting) return
    clearInterval(this.#looking)
    this.#looking = undefined
  }

  #answer([id, method, args, untilMs]: Call, nowMs: number): void {
    if (untilMs < nowMs) {
      this.#push([id, undefined, faultOf(late())])
      return
    }
    try {
      const value = this.#methods[method]?.(...(args as never[]))
      if (!(value instanceof Promise)) {
        this.#push([id, value])
        return
      }
      value.then(
        (made) => this.#push([id, made]),
        (error: unknown) => this.#push([id, undefined, faultOf(error)]),
      )
    } catch (error) {
      this.#push([id, undefined, faultOf(error)])
    }
  }

  #push(answer: Answer): void {
    this.#answers.push(answer)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      const batch: Batch = [MARK, this.#calls, this.#answers]
      this.#calls = []
      this.#answers = []
      if (!this.#isClosed) this.#send(batch)
    })
  }
}

/** A clock that all processes of the machine share, and that is never set. */
function machineMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1_000 + nanoseconds / 1_000_000
}

function gone(): StoreError {
  return new StoreError('OUTAGE', 'the other process of the service has ended')
}

function late(): StoreError {
  return new StoreError('OUTAGE', 'the other process of the service does not answer')
}

function faultOf(error: unknown): Fault {
  if (error instanceof PolicyError) return { kind: 'policy', message: error.mend, code: error.code, option: error.option }
  if (error instanceof StoreError) return { kind: 'store', message: error.message, code: error.code }
  const { message } = error as Error
  if (error instanceof ConfigError) return { kind: 'config', message }
  if (error instanceof RangeError) return { kind: 'range', message }
  if (error instanceof TooManyHeldError) return { kind: 'held', message }
  return { kind: 'other', message }
}

function errorOf({ kind, message, code, option = '' }: Fault): Error {
  switch (kind) {
    case 'policy':
      return new PolicyError(code as PolicyError['code'], option, undefined, message)
    case 'store':
      return new StoreError(code as StoreError['code'], message)
    // The text of a ConfigError holds all its faults.
    case 'config':
    case 'range':
      return new RangeError(message)
    case 'held':
      return new TooManyHeldError(message)
    case 'other':
      return new Error(message)
  }
}
