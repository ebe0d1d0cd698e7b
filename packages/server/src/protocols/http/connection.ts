import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Guard, type Guarded, listen } from '../guard.js'
import { DirectResponse, type ResponseSender } from './direct-response.js'
import { InputValve, type ValveOwner } from './input-valve.js'
import { KnownHead } from './known-head.js'
import type { Problem } from './problem.js'
import { replyProblem } from './reply.js'
import { endWithProblem } from './written-problem.js'

/** A client whose headers differ from request to request has them compared no more after this number. */
const MOST_MISSES = 16

/** Events that a connection reports to the set of all connections. */
export interface ConnectionOwner {
  /** The fields with which Node keeps a connection open. */
  readonly keepAliveFields: string
  readonly guard: Guard
  /** Answers a request whose headers are known, or returns false. */
  answerAgain(connection: Connection, target: string, response: DirectResponse): boolean
  answer(connection: Connection, response: ServerResponse): void
  /** Between two requests. */
  rest(connection: Connection): void
  holds(connection: Connection, deltaBytes: number): void
}

/**
 * The requests of one connection, answered one at a time: the next one is parsed when the client's system has taken the answer before it. So
 * a connection never has more than one answer in memory, which is freed with its socket. Node reports nothing about responses that
 * wait behind others when their socket is closed.
 */
export class Connection implements ValveOwner, ResponseSender {
  readonly socket: Socket
  /** The host at the other end, by which places are counted. */
  readonly host: string
  /** The number of its last change between idle and busy, in the order of all connections. */
  sinceTurn = 0
  /** Why this connection gets no answers; undefined for one that has a place. */
  refusal: Problem | undefined
  readonly #owner: ConnectionOwner
  readonly #valve: InputValve
  readonly #onTaken: () => void
  readonly #onDone: Guarded
  #current: ServerResponse | DirectResponse | undefined
  /** Requests that came in one slice with the one before; rarely any. */
  #waiting: ServerResponse[] = []
  /** The last response, sent after the answers to all requests before it; nothing is read after it. */
  #farewell: Problem | undefined
  #isEnding = false
  #hasAsked = false
  #unreadSinceMs: number | undefined
  /** Requests that Node's parser has read. */
  #parsed = 0
  #lastParsed: ServerResponse | undefined
  /** Whether the parser has taken whole requests only, so that the next byte begins one. */
  #isBetween = true
  /** Only while the next byte begins a request. */
  #known: KnownHead | undefined
  #misses = 0
  /** Texts given to the socket, and those of which it has reported that the system has them. */
  #sent = 0
  #taken = 0
  #isAnsweringDirectly = false
  /** The time limit of an idle connection, while it waits for a direct answer and has none; 0 otherwise. */
  #idleMs = 0

  constructor(socket: Socket, host: string, owner: ConnectionOwner) {
    this.socket = socket
    this.host = host
    this.#owner = owner
    const { guard } = owner
    this.#valve = new InputValve(socket, guard, this)
    this.#onTaken = guard.callback(socket, () => this.#take())
    this.#onDone = guard.listener(() => this.#next())
  }

  /** Whether no request has come yet. */
  get isNew(): boolean {
    return !this.#hasAsked
  }

  /** Whether a request is being answered, or waits for that. */
  get isBusy(): boolean {
    return this.#current !== undefined || this.#isEnding || this.hasMore
  }

  /** Whether a part of the request that is being answered is still to come. */
  get owesBody(): boolean {
    return this.#current?.req.complete === false
  }

  /** Whether requests have been read that are not being answered yet. */
  get hasMore(): boolean {
    return this.#waiting.length > 0 || this.#valve.isHolding
  }

  add(response: ServerResponse): void {
    this.#parsed++
    this.#lastParsed = response
    if (this.#current === undefined) this.#start(response)
    else this.#waiting.push(response)
  }

  mayRead(): boolean {
    // Of a request that is being answered the body is still to come.
    const isFree = this.#current === undefined || !this.#current.req.complete
    return isFree && this.#waiting.length === 0 && this.#farewell === undefined && !this.socket.destroyed
  }

  /** The first request of a connection goes to the parser in any case: Node's time limits begin with it. */
  answers(slice: Buffer): boolean {
    if (this.#known === undefined || this.refusal !== undefined) return false
    const target = this.#known.targetIn(slice)
    if (target === undefined) return false
    const response = new DirectResponse(this.#known.request, this, this.#owner.keepAliveFields)
    this.#current = response
    this.#isAnsweringDirectly = true
    const isAnswered = this.#owner.answerAgain(this, target, response)
    this.#isAnsweringDirectly = false
    if (isAnswered && !response.writableEnded) this.#pauseIdleLimit()
    if (!isAnswered) this.#current = undefined
    else this.#misses = 0
    return isAnswered
  }

  parsed(slice: Buffer, isHead: boolean): void {
    const isFirstByte = this.#isBetween
    const response = this.#lastParsed
    // One request, all of it in this slice: its headers end where the slice does.
    this.#isBetween = isHead && this.#parsed === 1 && response?.req.complete === true
    this.#parsed = 0
    this.#lastParsed = undefined
    this.#known = undefined
    if (!this.#isBetween || !isFirstByte || response === undefined || this.#misses >= MOST_MISSES) return
    this.#misses++
    this.#known = KnownHead.of(slice, response.req)
  }

  send(text: string, encoding: 'latin1' | 'utf8', isLast: boolean): void {
    if (this.socket.destroyed) return
    if (isLast) {
      this.socket.end(text, encoding, () => this.socket.destroySoon())
      return
    }
    this.#sent++
    this.socket.write(text, encoding, this.#onTaken)
    if (this.socket.writableLength === 0) this.#finishDirect()
  }

  #take(): void {
    this.#taken++
    if (this.#taken === this.#sent) this.#finishDirect()
  }

  #finishDirect(): void {
    const response = this.#current
    if (!(response instanceof DirectResponse) || !response.writableEnded) return
    response.writableFinished = true
    if (this.#idleMs > 0) this.socket.setTimeout(this.#idleMs)
    this.#idleMs = 0
    this.#next()
  }

  /** As Node does for requests that it parses. */
  #pauseIdleLimit(): void {
    this.#idleMs = this.socket.timeout ?? 0
    this.socket.setTimeout(0)
  }

  holds(deltaBytes: number): void {
    this.#owner.holds(this, deltaBytes)
  }

  /** Makes the answer that is not begun yet, if there is one, the last of the connection. */
  closeAfterAnswer(): void {
    if (this.#current?.headersSent === false && !this.hasMore) this.#current.shouldKeepAlive = false
  }

  /** Sends the reason why no more is read, after the answers to the requests before, and closes the connection. */
  endWith(problem: Problem): void {
    if (this.#farewell !== undefined) return
    this.#farewell = problem
    // A request with a malformed body of its own gets no other answer.
    if (this.#current === undefined || (!this.#current.req.complete && !this.#current.headersSent)) this.#end(problem)
  }

  /** Whether the client has left an answer unread for `limitMs`, evaluated at each call. */
  leftUnread(nowMs: number, limitMs: number): boolean {
    const isUnread = this.#isEnding || (this.#current?.writableEnded === true && !this.#current.writableFinished)
    if (!isUnread) this.#unreadSinceMs = undefined
    else this.#unreadSinceMs ??= nowMs
    return this.#unreadSinceMs !== undefined && nowMs - this.#unreadSinceMs >= limitMs
  }

  /** Drops the requests that were not begun. */
  drop(): void {
    this.#waiting = []
    this.#valve.drop()
  }

  #start(response: ServerResponse): void {
    this.#current = response
    this.#hasAsked = true
    listen(response, 'close', this.#onDone)
    if (this.refusal === undefined) {
      this.#owner.answer(this, response)
      return
    }
    response.shouldKeepAlive = false
    replyProblem(response, this.refusal)
  }

  #next(): void {
    this.#current = undefined
    this.#unreadSinceMs = undefined
    if (!this.socket.writable) {
      this.drop()
      return
    }
    const next = this.#waiting.shift()
    if (next !== undefined) this.#start(next)
    else if (this.#farewell !== undefined) this.#end(this.#farewell)
    // Even if there is a next request: the held input may be its body.
    if (!this.#isAnsweringDirectly) this.#valve.open()
    if (this.#current === undefined && !this.#isEnding) this.#owner.rest(this)
  }

  #end(problem: Problem): void {
    this.#isEnding = true
    endWithProblem(this.socket, problem)
  }
}
