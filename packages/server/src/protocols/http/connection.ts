import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type Guard, type Guarded, listen } from '../guard.js'
import { FastPath, type FastPathOptions, type FastPathOwner, type PlainRequest, type PlainResponse } from './fast/fast-path.js'
import type { Problem } from './problem.js'
import { endWithProblem, replyProblem } from './reply.js'

/** Events that a connection reports to the set of all connections. */
export interface ConnectionOwner {
  readonly guard: Guard
  readonly fastPath: FastPathOptions
  /** Answers a plain request, or returns false. */
  answerPlain(connection: Connection, request: PlainRequest, response: PlainResponse): boolean
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
export class Connection implements FastPathOwner {
  readonly socket: Socket
  /** The host at the other end, by which places are counted. */
  readonly host: string
  /** The number of its last change between idle and busy, in the order of all connections. */
  sinceTurn = 0
  /** Why this connection gets no answers; undefined for one that has a place. */
  refusal: Problem | undefined
  readonly #owner: ConnectionOwner
  readonly #input: FastPath
  readonly #onDone: Guarded
  #current: ServerResponse | PlainResponse | undefined
  /** Requests that came in one slice with the one before; rarely any. */
  #waiting: ServerResponse[] = []
  /** The last response, sent after the answers to all requests before it; nothing is read after it. */
  #farewell: Problem | undefined
  #isEnding = false
  #hasAsked = false
  #unreadSinceMs: number | undefined

  constructor(socket: Socket, host: string, owner: ConnectionOwner) {
    this.socket = socket
    this.host = host
    this.#owner = owner
    const { guard } = owner
    this.#onDone = guard.listener(() => this.#next())
    this.#input = new FastPath(socket, guard, this, owner.fastPath)
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
    return this.#waiting.length > 0 || this.#input.isHolding
  }

  add(response: ServerResponse): void {
    this.#input.parsedHead(response)
    if (this.#current === undefined) this.#start(response)
    else this.#waiting.push(response)
  }

  mayRead(): boolean {
    // Of a request that is being answered the body is still to come.
    const isFree = this.#current === undefined || !this.#current.req.complete
    return isFree && this.#waiting.length === 0 && this.#farewell === undefined && !this.socket.destroyed
  }

  answerPlain(request: PlainRequest, response: PlainResponse): boolean {
    if (this.refusal !== undefined) return false
    this.#current = response
    const isAnswered = this.#owner.answerPlain(this, request, response)
    if (!isAnswered) this.#current = undefined
    return isAnswered
  }

  answered(): void {
    this.#next()
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
    // A request with its own malformed body gets no other answer.
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
    this.#input.drop()
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
    this.#input.open()
    if (this.#current === undefined && !this.#isEnding) this.#owner.rest(this)
  }

  #end(problem: Problem): void {
    this.#isEnding = true
    endWithProblem(this.socket, problem)
  }
}
