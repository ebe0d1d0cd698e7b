import { PolicyError, type PolicyErrorCode, StoreError, type StoreErrorCode } from 'sluicegate'
import { TooManyHeldError } from '../engine/held-by-id.js'

/** What marks messages of the service on a channel that others may use too. */
const MARK = 'sluicegate:service'

type Call = readonly [id: number, method: string, args: readonly unknown[]]
type Answer = readonly [id: number, value: unknown, fault?: Fault]
/** All calls and answers of one turn of the event loop. */
type Batch = readonly [mark: typeof MARK, calls: readonly Call[], answers: readonly Answer[]]

/** An error of the other process that its caller distinguishes. */
interface Fault {
  readonly kind: 'policy' | 'store' | 'held' | 'other'
  readonly message: string
  readonly code?: string
  readonly option?: string
}

/** The methods that a process answers, each with a value or a promise. */
export type Methods = Readonly<Record<string, (...args: never[]) => unknown>>

/** Calls between two processes, in both directions, over the channel between them: one message for all calls and answers of a turn. */
export class Exchange {
  readonly #send: (message: Batch) => void
  readonly #methods: Methods
  readonly #waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  #calls: Call[] = []
  #answers: Answer[] = []
  #nextId = 1
  #isScheduled = false
  #isClosed = false

  constructor(send: (message: unknown) => void, methods: Methods) {
    this.#send = send
    this.#methods = methods
  }

  /** Rejects with the error of the method, or with `StoreError` `OUTAGE` when the other process ends before it answers. */
  call<Value>(method: string, ...args: readonly unknown[]): Promise<Value> {
    if (this.#isClosed) return Promise.reject(gone())
    const id = this.#nextId++
    this.#calls.push([id, method, args])
    this.#schedule()
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject }))
  }

  /** Takes a message of the other process; others are ignored. */
  receive(message: unknown): void {
    if (!Array.isArray(message) || message[0] !== MARK) return
    const [, calls, answers] = message as unknown as Batch
    for (const [id, value, fault] of answers) {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (fault === undefined) waiting?.resolve(value)
      else waiting?.reject(errorOf(fault))
    }
    for (const call of calls) this.#answer(call)
  }

  /** The other process has ended. */
  close(): void {
    this.#isClosed = true
    for (const { reject } of this.#waiting.values()) reject(gone())
    this.#waiting.clear()
  }

  #answer([id, method, args]: Call): void {
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

function gone(): StoreError {
  return new StoreError('OUTAGE', 'the other process of the service has ended')
}

function faultOf(error: unknown): Fault {
  if (error instanceof PolicyError) return { kind: 'policy', message: error.mend, code: error.code, option: error.option }
  if (error instanceof StoreError) return { kind: 'store', message: error.message, code: error.code }
  const { message } = error as Error
  return { kind: error instanceof TooManyHeldError ? 'held' : 'other', message }
}

function errorOf({ kind, message, code, option = '' }: Fault): Error {
  if (kind === 'policy') return new PolicyError(code as PolicyErrorCode, option, undefined, message)
  if (kind === 'store') return new StoreError(code as StoreErrorCode, message)
  return kind === 'held' ? new TooManyHeldError(message) : new Error(message)
}
