import type { Socket } from 'node:net'
import { inLaterTurn, isInputTimeOver } from '../../../later-turns.js'
import type { Guard } from '../../guard.js'

const HEADERS_END = Buffer.from('\r\n\r\n')
/** The most bytes parsed at once. A request takes 16 bytes or more, so that one slice never holds more than 64, whatever ends its headers. */
const MAX_SLICE_BYTES = 1_024
/** After this number of slices the other connections have their turn; then one slice at a time while others wait. */
const SLICES_PER_TURN = 4
const NOTHING = Buffer.alloc(0)

/** The owner, which decides when input is parsed. */
export interface ValveOwner {
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
export class InputValve {
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
