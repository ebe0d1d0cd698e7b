import { closedError, StoreError } from '../errors.js'
import { newOperationId } from '../shared/backend.js'
import type { Clock } from '../time/clock.js'
import { Alarm, alertOf } from '../waiting/alarm.js'
import { emitWarning } from '../warn-once.js'
import { type ParentChannel, type Receiver, receiveFromPrimary } from './channel.js'
import { ANSWER, MOST_AT_ONCE, NAME_UNKNOWN, REQUESTS, type Request, TERMS } from './message.js'

/** Later answers are dropped. */
const LATEST_MS = 60_000
/** How long a closed limiter listens for answers. */
const CLOSING_MS = 5_000
/** How long the primary may not serve the name before the process warns. */
const UNKNOWN_FOR_MS = 1_000

/** A request without an answer yet. */
interface Pending {
  readonly untilMs: number
  readonly resolve: (answer: readonly unknown[]) => void
  readonly reject: (error: StoreError) => void
}

/** What carries requests to where the state is. */
export interface RequestLink {
  /** Resolves with the answer to a request without its id. Rejects with `StoreError`. */
  request(id: number, verb: string, ...args: readonly unknown[]): Promise<readonly unknown[]>
  /** Sends a request whose answer is not needed. */
  tell(verb: string, ...args: readonly unknown[]): void
}

type OnTerms = (policy: unknown, horizonMs: unknown, workers: unknown) => void

/** What {@link PrimaryLink} is made of. */
interface PrimaryLinkParts {
  readonly channel: ParentChannel
  /** Of the policy. */
  readonly name: string
  readonly clock: Clock
}

/** One limiter's requests and answers on the channel to the primary. All requests of a turn of the event loop are one message. */
export class PrimaryLink implements RequestLink {
  private readonly parts: PrimaryLinkParts
  private readonly pending = new Map<number, Pending>()
  private onTerms: OnTerms = () => undefined
  /** Undefined while it does not listen. */
  private stop: (() => void) | undefined
  private requests: Request[] = []
  private fault: string | undefined
  private isClosing = false
  private unknownSinceMs: number | undefined
  private isWarned = false
  private readonly alarm: Alarm
  private readonly patience = alertOf(() => this.leave())

  constructor(parts: PrimaryLinkParts) {
    this.parts = parts
    this.alarm = new Alarm(parts.clock, () => this.leave())
  }

  /**
   * Listens, and greets the primary.
   *
   * @throws {PolicyError} `NAME_INVALID`
   */
  open(onTerms: OnTerms): void {
    this.onTerms = onTerms
    this.listen()
    this.tell('hello')
  }

  /** Resolves with the primary's answer without its id. Rejects with `StoreError`, `OUTAGE` when there is no channel. */
  request(id: number, verb: string, ...args: readonly unknown[]): Promise<readonly unknown[]> {
    if (!this.isOpen) return Promise.reject(noChannel(this.fault))
    if (this.isClosing) this.linger()
    return new Promise((resolve, reject) => {
      const nowMs = this.parts.clock.nowMs()
      for (const [oldId, { untilMs }] of this.pending) {
        if (untilMs > nowMs) break
        this.pending.delete(oldId)
      }
      this.pending.set(id, { untilMs: nowMs + LATEST_MS, resolve, reject })
      this.post([id, verb, ...args])
    })
  }

  /** Sends a request whose answer is not needed. */
  tell(verb: string, ...args: readonly unknown[]): void {
    if (this.isOpen) this.post([newOperationId(), verb, ...args])
  }

  /** The primary's terms are invalid: it gets no more requests. */
  giveUp(why: string): void {
    this.fault = why
    this.rejectAll(noChannel(why))
    emitWarning('SLUICEGATE_POLICY', why)
  }

  /** From now on listens only while a request has no answer. */
  close(): void {
    this.isClosing = true
    if (this.pending.size > 0) this.linger()
    else this.leave()
  }

  private listen(): void {
    const { channel, name } = this.parts
    const receiver: Receiver = (kind, content) => {
      if (kind === ANSWER && Array.isArray(content[0])) for (const answer of content[0]) this.answered(answer)
      else if (kind === TERMS && !this.isClosing) {
        this.unknownSinceMs = undefined
        this.onTerms(content[0], content[1], content[2])
      }
    }
    this.stop = receiveFromPrimary(channel, name, { receiver, onEnd: () => this.onDisconnect(), isLeaving: () => this.isClosing })
  }

  private linger(): void {
    if (this.stop === undefined) this.listen()
    this.alarm.set(this.patience, this.alarm.inUs(CLOSING_MS), 0)
  }

  private leave(): void {
    this.alarm.clear(this.patience)
    this.stop?.()
    this.stop = undefined
    this.rejectAll(closedError())
  }

  private get isOpen(): boolean {
    return this.fault === undefined && this.parts.channel.connected !== false
  }

  private onDisconnect(): void {
    this.rejectAll(noChannel())
    if (this.isClosing) this.leave()
  }

  private post(request: Request): void {
    this.requests.push(request)
    if (this.requests.length === 1) setImmediate(() => this.send())
  }

  private send(): void {
    const { channel, name } = this.parts
    const { requests } = this
    this.requests = []
    for (let from = 0; from < requests.length; from += MOST_AT_ONCE) {
      const batch = requests.slice(from, from + MOST_AT_ONCE)
      channel.send?.([REQUESTS, name, batch], (error) => {
        if (error !== null) for (const [id] of batch) this.take(id)?.reject(noChannel(error))
      })
    }
  }

  private answered(answer: unknown): void {
    if (!Array.isArray(answer)) return
    const [id, ...content] = answer
    if (content[0] === NAME_UNKNOWN) this.unknown(String(content[1]))
    const waiting = this.take(id)
    if (typeof content[0] === 'string') waiting?.reject(errorIn(content))
    else waiting?.resolve(content)
  }

  /** Warns if the primary does not serve the name after a while: it may start a little later than this process. */
  private unknown(why: string): void {
    const nowMs = this.parts.clock.nowMs()
    this.unknownSinceMs ??= nowMs
    if (this.isWarned || nowMs - this.unknownSinceMs < UNKNOWN_FOR_MS) return
    this.isWarned = true
    emitWarning('SLUICEGATE_POLICY', `${why}: until then the option outage decides here`)
  }

  private take(id: number): Pending | undefined {
    const waiting = this.pending.get(id)
    this.pending.delete(id)
    if (this.isClosing && this.pending.size === 0) this.leave()
    return waiting
  }

  private rejectAll(error: StoreError): void {
    for (const { reject } of this.pending.values()) reject(error)
    this.pending.clear()
  }
}

/** The primary's refusal keeps its code; any other error is an outage. */
export function errorIn([code, message]: readonly unknown[]): StoreError {
  const known = code === 'CONTENTION' || code === 'TABLE_FULL' ? code : 'OUTAGE'
  return new StoreError(known, `the primary: ${code}: ${message}`)
}

function noChannel(cause?: unknown): StoreError {
  return new StoreError('OUTAGE', 'there is no channel to the primary', cause === undefined ? {} : { cause })
}
