import { type Clock, type Ticker, tickerOf } from '../../time/clock.js'
import { Alarm, alertOf } from '../../waiting/alarm.js'

/** The share of the timeout that this process may stand still before its calls get more time. */
const STALL = 1 / 4
/** A call waits for a connection that is being opened up to about so long beyond its timeout. */
const LONGEST_CONNECTING_US = 1_000_000

/** A call with a deadline. The fields belong to {@link Deadlines}. */
export abstract class Expiring {
  dueUs = 0
  /** The turn of the event loop in which it began. */
  turn = 0
  isRenewed = false
  /** Connections opened before it, and how often it got more time because one was being opened. */
  opened: number | undefined = undefined
  connectings = 0
  before: Expiring | undefined = undefined
  after: Expiring | undefined = undefined
  abstract expire(): void
}

/**
 * The deadlines of calls with one timeout, oldest first, on one timer.
 *
 * No call expires because this process stood still. Clients write when a turn of the event loop ends, and answers are read in a later turn.
 * So the time of a call restarts when its own turn took long, and once more when the timer fires late; and all sockets are read before a
 * call expires. While a connection is being opened, the store has not been asked yet: the time of its calls restarts after that, within bounds.
 */
export class Deadlines {
  private readonly alarm: Alarm
  private readonly ticker: Ticker
  private readonly timeoutUs: number
  private readonly opened: () => number | undefined
  private first: Expiring | undefined
  private last: Expiring | undefined
  private turn = 0
  private turnUs = 0
  private isInTurn = false
  private isLooking = false
  private readonly alert = alertOf((nowUs) => this.ring(nowUs))

  /** @param opened how many connections were opened so far; undefined while calls wait for one. */
  constructor(clock: Clock, timeoutMs: number, opened: () => number | undefined = () => 0) {
    this.opened = opened
    this.alarm = new Alarm(clock, () => undefined)
    this.ticker = tickerOf(clock)
    this.timeoutUs = timeoutMs * 1000
  }

  add(call: Expiring): void {
    if (!this.isInTurn) this.beginTurn()
    call.turn = this.turn
    call.opened = this.opened()
    this.append(call, this.turnUs + this.timeoutUs)
  }

  private append(call: Expiring, dueUs: number): void {
    call.dueUs = dueUs
    call.before = this.last
    if (this.last === undefined) this.first = call
    else this.last.after = call
    this.last = call
    // An alarm that is set already is for an earlier time, and is set again when it rings.
    if (this.first === call && this.alert.place === -1) this.arm()
  }

  /** Removes a call that was added; once. */
  remove(call: Expiring): void {
    const { before, after } = call
    if (before === undefined) this.first = after
    else before.after = after
    if (after === undefined) this.last = before
    else after.before = before
    call.before = undefined
    call.after = undefined
    // The next call is often made in the turn of this answer: the timer stays until that is over.
    if (this.first === undefined && !this.isInTurn) this.beginTurn()
  }

  private beginTurn(): void {
    this.turn++
    this.turnUs = this.ticker.read()
    this.isInTurn = true
    const { turn } = this
    const atItsEnd = globalThis.setImmediate ?? queueMicrotask
    atItsEnd(() => this.endTurn(turn))
  }

  private endTurn(turn: number): void {
    if (turn !== this.turn || !this.isInTurn) return
    this.isInTurn = false
    if (this.first === undefined) {
      this.alarm.clear(this.alert)
      return
    }
    const nowUs = this.ticker.read()
    if (!this.wasStall(nowUs - this.turnUs)) return
    for (let call = this.last; call?.turn === this.turn; call = call.before) call.dueUs = nowUs + this.timeoutUs
    if (this.first?.turn === this.turn) this.arm()
  }

  private ring(nowUs: number): void {
    this.isInTurn = false
    if (this.wasStall(nowUs - this.alert.dueUs)) this.renew(nowUs)
    if (this.isLooking || this.first === undefined) return
    if (this.first.dueUs > nowUs) {
      this.arm()
      return
    }
    this.isLooking = true
    // Between two of these the event loop reads all sockets.
    setImmediate(() => setImmediate(() => this.look(nowUs)))
  }

  private renew(nowUs: number): void {
    for (let call = this.last; call !== undefined && !call.isRenewed; call = call.before) {
      call.isRenewed = true
      call.dueUs = nowUs + this.timeoutUs
    }
  }

  private look(nowUs: number): void {
    try {
      for (let { first } = this; first !== undefined && first.dueUs <= nowUs; { first } = this) {
        this.remove(first)
        if (this.mayWait(first)) this.append(first, nowUs + this.timeoutUs)
        else first.expire()
      }
    } finally {
      this.isLooking = false
      if (this.first !== undefined) this.arm()
    }
  }

  /** Whether its time restarts: it waits for a connection, or waited for one. */
  private mayWait(call: Expiring): boolean {
    const opened = this.opened()
    if (opened !== undefined && opened === call.opened) return false
    call.opened = opened
    return ++call.connectings * this.timeoutUs <= LONGEST_CONNECTING_US
  }

  private arm(): void {
    if (this.first !== undefined) this.alarm.set(this.alert, this.first.dueUs, 0)
  }

  private wasStall(us: number): boolean {
    return us > this.timeoutUs * STALL
  }
}
