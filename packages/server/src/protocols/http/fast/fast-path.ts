import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { inLaterTurn, isInputTimeOver } from '../../../later-turns.js'
import type { Guard } from '../../guard.js'
import type { WholeResponse } from '../handler.js'
import { type PlainRequest, readPlainRequest } from './plain-request.js'

/** Fields with other characters could end their line (RFC 9110, section 5.5). */
const UNSAFE = /[^\t\x20-\x7e]/
const MS_PER_S = 1_000

/** What sends the text of a {@link PlainResponse}. */
interface ResponseSender {
  /** Whether the connection closes after this response. */
  send(text: string, encoding: 'latin1' | 'utf8', isLast: boolean): void
}

/** A response to a {@link PlainRequest}: the same bytes that Node would send, as one text. */
class PlainResponse implements WholeResponse {
  /** As of Node's response: false makes it the last of its connection. */
  shouldKeepAlive = true
  statusCode = 200
  writableEnded = false
  writableFinished = false
  readonly req: PlainRequest
  readonly #sender: ResponseSender
  readonly #keepAlive: string
  #head = ''

  /** @param keepAlive the fields with which Node keeps a connection open. */
  constructor(req: PlainRequest, sender: ResponseSender, keepAlive: string) {
    this.req = req
    this.#sender = sender
    this.#keepAlive = keepAlive
  }

  get headersSent(): boolean {
    return this.#head !== ''
  }

  /** @throws {TypeError} for a value that could end its line. */
  writeHead(status: number, headers: readonly string[]): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`
    for (let i = 0; i < headers.length; i += 2) {
      const value = headers[i + 1] as string
      if (UNSAFE.test(value)) throw new TypeError(`the value of ${headers[i]} has characters that a header cannot have`)
      head += `${headers[i]}: ${value}\r\n`
    }
    this.statusCode = status
    this.#head = head
  }

  end(body: string | Buffer = ''): void {
    this.writableEnded = true
    const text = typeof body === 'string' ? body : body.toString()
    const connection = this.shouldKeepAlive ? this.#keepAlive : 'Connection: close\r\n'
    const isAscii = Buffer.byteLength(text) === text.length
    this.#sender.send(`${this.#head}Date: ${httpDate()}\r\n${connection}\r\n${text}`, isAscii ? 'latin1' : 'utf8', !this.shouldKeepAlive)
  }
}

let dateS = 0
let date = ''

/** Now, as in a Date header (RFC 9110, section 5.6.7). */
function httpDate(): string {
  const nowS = Math.floor(Date.now() / MS_PER_S)
  if (nowS !== dateS) {
    dateS = nowS
    date = new Date(nowS * MS_PER_S).toUTCString()
  }
  return date
}

export type { PlainRequest, PlainResponse }

/** What a {@link FastPath} needs to know of its connection, and tells it. */
export interface FastPathOwner {
  /** Whether the next request may be read. */
  mayRead(): boolean
  /** Answers `request` if it may be answered now and here; false leaves it to Node's parser. */
  answerPlain(request: PlainRequest, response: PlainResponse): boolean
  /** The client's system has taken the last answer to a plain request. */
  answered(): void
  /** Bytes more (or fewer) that have been read from the socket and wait. */
  holds(deltaBytes: number): void
}

/** What is the same for all connections of a server. */
export interface FastPathOptions {
  /** The fields with which Node keeps a connection open. */
  readonly keepAliveFields: string
  /** Whether handlers need all fields of a request, for example to follow it; otherwise those that the service reads. */
  readonly keepsAllFields: boolean
}

/**
 * The input of a connection. One request at a time is passed on, when the owner may read. A plain request is answered here with one write; all others go to Node's
 * parser, whose bytes are counted: a request is read here only where it is certain that its first byte begins one. The first request of a
 * connection goes to the parser in any case, since Node's time limits begin with it.
 */
export class FastPath implements ValveOwner, ResponseSender {
  readonly #socket: Socket
  readonly #owner: FastPathOwner
  readonly #options: FastPathOptions
  readonly #valve: InputValve
  readonly #onTaken: () => void
  /** To the plain request that is being answered. An idle connection keeps neither request nor response. */
  #response: PlainResponse | undefined
  #isAnswering = false
  /** Whether the next byte begins a request. */
  #isBetween = true
  /** Of the request that goes to the parser; NaN where only the parser knows its end. */
  bytesLeft = Number.NaN
  /** Heads that the parser has read in this slice. */
  #heads = 0
  /** To the request that goes to the parser, from when it has read the head. */
  #parsing: ServerResponse | undefined
  #hasParsed = false
  /** Texts given to the socket, and those of which it has reported that the system has them. */
  #sent = 0
  #taken = 0
  /** The time limit of an idle connection, while it waits for a plain answer and has none; 0 otherwise. */
  #idleMs = 0

  constructor(socket: Socket, guard: Guard, owner: FastPathOwner, options: FastPathOptions) {
    this.#socket = socket
    this.#owner = owner
    this.#options = options
    this.#valve = new InputValve(socket, guard, this)
    this.#onTaken = guard.callback(socket, () => this.#take())
  }

  /** Whether requests, or parts of one, wait. */
  get isHolding(): boolean {
    return this.#valve.isHolding
  }

  /** Passes on the input that the owner admits now. */
  open(): void {
    // While a plain request is being answered the valve is open.
    if (!this.#isAnswering) this.#valve.open()
  }

  /** Drops the input of a closed socket. */
  drop(): void {
    this.#valve.drop()
  }

  /** The parser has read a head, which `response` is for. */
  parsedHead(response: ServerResponse): void {
    this.#heads++
    this.#parsing = response
    this.#hasParsed = true
  }

  mayRead(): boolean {
    return this.#owner.mayRead()
  }

  holds(deltaBytes: number): void {
    this.#owner.holds(deltaBytes)
  }

  /** Answers the request at the begin of `input`, and returns its length; 0 leaves it to the parser. */
  answer(input: Buffer): number {
    if (!this.#isBetween) return 0
    const request = readPlainRequest(input, this.#options.keepsAllFields)
    this.bytesLeft = request?.byteLength ?? Number.NaN
    this.#parsing = undefined
    if (request === undefined || request.byteLength > input.length || !this.#hasParsed) return 0
    const response = new PlainResponse(request, this, this.#options.keepAliveFields)
    this.#response = response
    this.#isAnswering = true
    const isAnswered = this.#owner.answerPlain(request, response)
    this.#isAnswering = false
    if (!isAnswered) {
      this.#response = undefined
      return 0
    }
    if (!response.writableEnded) this.#pauseIdleLimit()
    return request.byteLength
  }

  parsed(bytes: number, isHead: boolean): void {
    this.bytesLeft -= bytes
    // Of a request that is not plain: one head without a body, which ends where the slice does.
    const isEnd = this.bytesLeft === 0 || (isHead && this.#heads === 1)
    this.#heads = 0
    const request = this.#parsing?.req
    // After an upgrade that did not happen the parser treats errors in another way, until the next request.
    this.#isBetween = isEnd && request?.complete === true && request.headers.upgrade === undefined && this.#socket.readableLength === 0
    if (this.#isBetween) this.#parsing = undefined
  }

  send(text: string, encoding: 'latin1' | 'utf8', isLast: boolean): void {
    const socket = this.#socket
    if (socket.destroyed) return
    if (isLast) {
      socket.end(text, encoding, () => socket.destroySoon())
      return
    }
    this.#sent++
    socket.write(text, encoding, this.#onTaken)
    if (socket.writableLength === 0) this.#finish()
  }

  #take(): void {
    this.#taken++
    if (this.#taken === this.#sent) this.#finish()
  }

  #finish(): void {
    const response = this.#response
    if (response === undefined || !response.writableEnded) return
    response.writableFinished = true
    this.#response = undefined
    if (this.#idleMs > 0) this.#socket.setTimeout(this.#idleMs)
    this.#idleMs = 0
    this.#owner.answered()
  }

  /** As Node does for requests that it parses. */
  #pauseIdleLimit(): void {
    this.#idleMs = this.#socket.timeout ?? 0
    this.#socket.setTimeout(0)
  }
}

const HEADERS_END = Buffer.from('\r\n\r\n')
/** The most bytes parsed at once. A request takes 16 bytes or more, so that one slice never holds more than 64, whatever ends its headers. */
const MAX_SLICE_BYTES = 1_024
/** After this number of slices the other connections have their turn; then one slice at a time while others wait. */
const SLICES_PER_TURN = 4
const NOTHING = Buffer.alloc(0)

/** The owner, which decides when input is parsed. */
interface ValveOwner {
  /** Whether the next request may be parsed. */
  mayRead(): boolean
  /** The most bytes of the next slice; NaN: wherever it has to end. */
  readonly bytesLeft: number
  /** Answers the request at the begin of `input` without the parser, if that is possible. Returns its length, or 0. */
  answer(input: Buffer): number
  /** The parser has taken a slice of `bytes`. `isHead`: it ends where a head may end. */
  parsed(bytes: number, isHead: boolean): void
  /** Bytes more (or fewer) that have been read from the socket and wait to be parsed. */
  holds(deltaBytes: number): void
}

/**
 * Stands between a socket and Node's HTTP parser. The parser takes all requests of a chunk at once, 3,600 of them in 64 KiB, each of which costs some
 * kilobytes until it is answered. Behind the valve it gets one request, and the next one when the owner says so; until then nothing more is read
 * from the socket, and TCP's flow control stops the client.
 */
class InputValve {
  readonly #owner: ValveOwner
  readonly #push: Socket['push']
  readonly #read: Socket['_read']
  /** In a later turn. */
  readonly #goOn: (isAlone: boolean) => void
  #held: Buffer = NOTHING
  #countedBytes = 0
  /** The client's end of the stream is held back as well, since Node would close the connection before the answers are out. */
  #hasEnded = false
  #isReadWanted = false
  #isDeferred = false
  #slicesLeft = SLICES_PER_TURN
  /** Of the last slice. */
  #endsHead = false
  /** Whether the last slice was answered without the parser. */
  #hasBypassed = false

  constructor(socket: Socket, guard: Guard, owner: ValveOwner) {
    this.#owner = owner
    this.#push = socket.push.bind(socket)
    this.#read = socket._read.bind(socket)
    const take = guard.callback(socket, (chunk: Buffer | null) => this.#take(chunk))
    socket.push = (chunk: Buffer | null) => take(chunk) ?? false
    socket._read = guard.callback(socket, (size: number) => this.#want(size))
    this.#goOn = guard.callback(socket, (isAlone: boolean) => {
      this.#isDeferred = false
      this.#slicesLeft = isAlone ? SLICES_PER_TURN : 1
      this.open()
    })
    // Without its own listener for 'data' Node parses what the handle reads, past `push`.
    guard.on(socket, 'data', ignore)
  }

  /** Whether requests, or parts of one, wait to be parsed. */
  get isHolding(): boolean {
    return this.#held.length > 0
  }

  /** Passes on the input that the owner admits now. */
  open(): void {
    if (!(this.isHolding || this.#hasEnded) || this.#isDeferred) return
    // Input that did not reach the parser has left no wish for more.
    if (this.#feed() && this.#hasBypassed) this.#read(MAX_SLICE_BYTES)
  }

  /** Drops the input of a closed socket. */
  drop(): void {
    this.#held = NOTHING
    this.#count()
  }

  /** Takes the input of the socket. Returns whether the socket reads on. */
  #take(chunk: Buffer | null): boolean {
    if (chunk === null) this.#hasEnded = true
    else this.#held = this.isHolding ? Buffer.concat([this.#held, chunk]) : chunk
    if (this.#isDeferred) return false
    if (this.isHolding && isInputTimeOver()) {
      this.#defer()
      this.#count()
      return false
    }
    this.#slicesLeft = SLICES_PER_TURN
    return this.#feed()
  }

  #feed(): boolean {
    let goesOn = false
    while (this.isHolding && this.#owner.mayRead()) {
      if (this.#slicesLeft-- <= 0) {
        this.#defer()
        break
      }
      const answeredBytes = this.#owner.answer(this.#held)
      this.#hasBypassed = answeredBytes > 0
      if (this.#hasBypassed) {
        this.#drop(answeredBytes)
        goesOn = true
        continue
      }
      const slice = this.#nextSlice()
      goesOn = this.#push(slice)
      this.#owner.parsed(slice.length, this.#endsHead)
    }
    this.#count()
    if (this.isHolding) return false
    if (this.#hasEnded && this.#owner.mayRead()) {
      this.#hasEnded = false
      return this.#push(null)
    }
    if (this.#isReadWanted) this.#want(MAX_SLICE_BYTES)
    return goesOn
  }

  #nextSlice(): Buffer {
    const held = this.#held
    const end = held.indexOf(HEADERS_END)
    const { bytesLeft } = this.#owner
    const mostBytes = bytesLeft > 0 ? Math.min(bytesLeft, MAX_SLICE_BYTES) : MAX_SLICE_BYTES
    const length = Math.min(held.length, mostBytes, end < 0 ? held.length : end + HEADERS_END.length)
    this.#endsHead = end >= 0 && end + HEADERS_END.length === length
    this.#drop(length)
    return length === held.length ? held : held.subarray(0, length)
  }

  #drop(bytes: number): void {
    this.#held = bytes === this.#held.length ? NOTHING : this.#held.subarray(bytes)
  }

  /** Reading on while input is held would fill memory. */
  #want(size: number): void {
    this.#isReadWanted = this.isHolding
    if (!this.isHolding) this.#read(size)
  }

  #defer(): void {
    this.#isDeferred = true
    inLaterTurn(this.#goOn)
  }

  #count(): void {
    const delta = this.#held.length - this.#countedBytes
    if (delta === 0) return
    this.#countedBytes += delta
    this.#owner.holds(delta)
  }
}

function ignore(): void {}
