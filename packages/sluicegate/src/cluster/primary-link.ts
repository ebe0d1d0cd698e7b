import { closedError, StoreError } from '../errors.js'
import { Link } from '../owner/link.js'
import { ANSWER, type Message, MOST_AT_ONCE, REQUESTS, type Request, TERMS, VERSION, VERSION_UNKNOWN } from '../owner/message.js'
import { newOperationId } from '../shared/backend.js'
import type { Clock } from '../time/clock.js'
import { Alarm, alertOf } from '../waiting/alarm.js'
import { emitWarning } from '../warn-once.js'
import { type ParentChannel, receiveFromPrimary } from './channel.js'

/** How long a closed limiter listens for answers. */
const CLOSING_MS = 5_000
/** How long the primary may not serve the name before the process warns. */
const UNKNOWN_FOR_MS = 1_000

/** One limiter's requests and answers on the channel to the primary. */
export class PrimaryLink extends Link {
  private readonly channel: ParentChannel
  private readonly name: string
  private readonly clock: Clock
  private onTerms: (policy: unknown, horizonMs: unknown, workers: unknown) => void = () => undefined
  /** Undefined while it does not listen. */
  private stop: (() => void) | undefined
  private fault: string | undefined
  private isClosing = false
  private unknownSinceMs: number | undefined
  private isWarned = false
  private readonly alarm: Alarm
  private readonly patience = alertOf(() => this.leave())

  /** @param name of the policy. */
  constructor(channel: ParentChannel, name: string, clock: Clock) {
    super(MOST_AT_ONCE)
    this.channel = channel
    this.name = name
    this.clock = clock
    this.alarm = new Alarm(clock, () => this.leave())
  }

  /**
   * Listens, and greets the primary.
   *
   * @throws {PolicyError} `NAME_INVALID`
   */
  open(onTerms: PrimaryLink['onTerms']): void {
    this.onTerms = onTerms
    this.listen()
    this.tell([newOperationId(), 'hello'])
  }

  override request(request: Request): Promise<readonly unknown[]> {
    if (!this.isOpen) return Promise.reject(noChannel(this.fault))
    if (this.isClosing) this.linger()
    return super.request(request)
  }

  override tell(request: Request): void {
    if (this.isOpen) super.tell(request)
  }

  /** The primary's terms are invalid, or of another version: it gets no more requests. */
  giveUp(why: string): void {
    if (this.fault !== undefined) return
    this.fault = why
    this.unanswered(noChannel(why))
    emitWarning('SLUICEGATE_POLICY', why)
  }

  /** From now on listens only while a request has no answer. */
  close(): void {
    this.isClosing = true
    if (this.isIdle) this.leave()
    else this.linger()
  }

  private listen(): void {
    const { channel, name } = this
    this.stop = receiveFromPrimary(channel, name, {
      receiver: (kind, content) => {
        if (kind === ANSWER && Array.isArray(content[0])) {
          this.answered(content[0])
          if (this.isClosing && this.isIdle) this.leave()
        } else if (kind === TERMS && !this.isClosing) {
          this.unknownSinceMs = undefined
          this.onTerms(content[0], content[1], content[2])
        }
      },
      onOtherVersion: (version) => this.otherVersion(`the primary speaks version ${String(version)} of the protocol, and not ${VERSION}`),
      onEnd: () => {
        this.unanswered(noChannel())
        if (this.isClosing) this.leave()
      },
      isLeaving: () => this.isClosing,
    })
  }

  private linger(): void {
    if (this.stop === undefined) this.listen()
    this.alarm.set(this.patience, this.alarm.inUs(CLOSING_MS), 0)
  }

  private leave(): void {
    this.alarm.clear(this.patience)
    this.stop?.()
    this.stop = undefined
    this.unanswered(closedError())
  }

  private get isOpen(): boolean {
    return this.fault === undefined && this.channel.connected !== false
  }

  protected override send(_place: string, requests: readonly Request[]): void {
    const { channel, name } = this
    const message: Message = [REQUESTS, name, VERSION, requests]
    channel.send?.(message, (error) => {
      if (error !== null) this.unanswered(noChannel(error), requests)
    })
  }

  protected override placeOf(): string {
    return ''
  }

  protected override atEndOfTurn(send: () => void): void {
    setImmediate(send)
  }

  protected override nowMs(): number {
    return this.clock.nowMs()
  }

  /** Warns if the primary does not serve the name after a while: it may start a little later than this process. */
  protected override refused(code: string, why: string): void {
    if (code === VERSION_UNKNOWN) {
      this.otherVersion(`the primary is of another version: ${why}`)
      return
    }
    const nowMs = this.nowMs()
    this.unknownSinceMs ??= nowMs
    if (this.isWarned || nowMs - this.unknownSinceMs < UNKNOWN_FOR_MS) return
    this.isWarned = true
    emitWarning('SLUICEGATE_POLICY', `${why}: until then the option outage decides here`)
  }

  private otherVersion(why: string): void {
    this.giveUp(`${why}: restart the processes with one version; until then the option outage decides here`)
  }
}

function noChannel(cause?: unknown): StoreError {
  return new StoreError('OUTAGE', 'there is no channel to the primary', cause === undefined ? {} : { cause })
}
