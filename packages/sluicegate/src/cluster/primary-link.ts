import type { Clock } from '../clock.js'
import { StoreError } from '../errors.js'
import { warnProcess } from '../process-warning.js'
import { newOperationId } from '../shared/backend.js'
import { Alarm, type Alert } from '../waiting/alarm.js'
import { type Receiver, receiveFromPrimary } from './inbox.js'
import { ANSWER, ASK, MOST_AT_ONCE, NAME_UNKNOWN, type Request, TERMS } from './message.js'
import type { ParentChannel } from './worker-process.js'

/** An answer that comes later is nobody's. */
const LATEST_MS = 60_000
/** Who was closed listens no longer for an answer. */
const CLOSING_MS = 5_000
/** How long a primary may serve no policy of the name before that is a fault. */
const UNKNOWN_FOR_MS = 1_000

/** Somebody who waits for an answer, and until when. */
interface Asker {
  readonly untilMs: number
  readonly resolve: (answer: readonly unknown[]) => void
  readonly reject: (error: StoreError) => void
}

type OnTerms = (policy: unknown, horizonMs: unknown) => void

/** What a link needs. */
interface PrimaryLinkParts {
  readonly channel: ParentChannel
  /** Of the policy. */
  readonly name: string
  readonly clock: Clock
}

/** The channel to the primary, as one limiter uses it: questions and answers. All that a turn of the event loop asks goes in one message. */
export class PrimaryLink {
  private readonly parts: PrimaryLinkParts
  private readonly askers = new Map<number, Asker>()
  private onTerms: OnTerms = () => undefined
  /** Undefined while nobody listens. */
  private stop: (() => void) | undefined
  private requests: Request[] = []
  private fault: string | undefined
  private isClosing = false
  private unknownSinceMs: number | undefined
  private isToldUnknown = false
  private readonly alarm: Alarm
  private readonly patience: Alert = { dueUs: 0, order: 0, place: -1, ring: () => this.leave() }

  constructor(parts: PrimaryLinkParts) {
    this.parts = parts
    this.alarm = new Alarm(parts.clock, () => this.leave())
  }

  /**
   * Begins to listen, and says so.
   *
   * @throws {PolicyError} `NAME_INVALID`
   */
  open(onTerms: OnTerms): void {
    this.onTerms = onTerms
    this.listen()
    this.tell('hello')
  }

  /** What the primary answers, after the id. Rejects with `StoreError`, `OUTAGE` when there is no channel. */
  ask(id: number, verb: string, ...args: readonly unknown[]): Promise<readonly unknown[]> {
    if (!this.isOpen) return Promise.reject(noChannel(this.fault))
    if (this.isClosing) this.linger()
    return new Promise((resolve, reject) => {
      const nowMs = this.parts.clock.nowMs()
      for (const [oldId, { untilMs }] of this.askers) {
        if (untilMs > nowMs) break
        this.askers.delete(oldId)
      }
      this.askers.set(id, { untilMs: nowMs + LATEST_MS, resolve, reject })
      this.post([id, verb, ...args])
    })
  }

  /** Asks without waiting for what comes of it. */
  tell(verb: string, ...args: readonly unknown[]): void {
    if (this.isOpen) this.post([newOperationId(), verb, ...args])
  }

  /** What the primary says makes no sense: it is not asked any more. */
  giveUp(why: string): void {
    this.fault = why
    this.rejectAll(noChannel(why))
    globalThis.process?.emitWarning?.(why, { type: 'SluicegateWarning', code: 'SLUICEGATE_POLICY' })
  }

  /** Listens from now on only while something that was asked is not answered. */
  close(): void {
    this.isClosing = true
    if (this.askers.size > 0) this.linger()
    else this.leave()
  }

  private listen(): void {
    const { channel, name } = this.parts
    const receiver: Receiver = (kind, content) => {
      if (kind === ANSWER && Array.isArray(content[0])) for (const answer of content[0]) this.answered(answer)
      else if (kind === TERMS && !this.isClosing) {
        this.unknownSinceMs = undefined
        this.onTerms(content[0], content[1])
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
    this.rejectAll(new StoreError('CLOSED', 'this limiter was closed'))
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
      channel.send?.([ASK, name, batch], (error) => {
        if (error !== null) for (const [id] of batch) this.take(id)?.reject(noChannel(error))
      })
    }
  }

  private answered(answer: unknown): void {
    if (!Array.isArray(answer)) return
    const [id, ...content] = answer
    if (content[0] === NAME_UNKNOWN) this.unknown(String(content[1]))
    const asker = this.take(id)
    if (typeof content[0] === 'string') asker?.reject(errorIn(content))
    else asker?.resolve(content)
  }

  /** The primary may serve it a little later than this process asks. Nobody is told before it was given the time. */
  private unknown(why: string): void {
    const nowMs = this.parts.clock.nowMs()
    this.unknownSinceMs ??= nowMs
    if (this.isToldUnknown || nowMs - this.unknownSinceMs < UNKNOWN_FOR_MS) return
    this.isToldUnknown = true
    warnProcess(`${why}: until then the option outage decides here`, { type: 'SluicegateWarning', code: 'SLUICEGATE_POLICY' })
  }

  private take(id: number): Asker | undefined {
    const asker = this.askers.get(id)
    this.askers.delete(id)
    if (this.isClosing && this.askers.size === 0) this.leave()
    return asker
  }

  private rejectAll(error: StoreError): void {
    for (const { reject } of this.askers.values()) reject(error)
    this.askers.clear()
  }
}

/** What the primary refuses is told as its own limiter would; anything else as what it is, no answer. */
function errorIn([code, message]: readonly unknown[]): StoreError {
  const known = code === 'CONTENTION' || code === 'TABLE_FULL' ? code : 'OUTAGE'
  return new StoreError(known, `the primary: ${code}: ${message}`)
}

function noChannel(cause?: unknown): StoreError {
  return new StoreError('OUTAGE', 'there is no channel to the primary', cause === undefined ? {} : { cause })
}
