import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { ErrorTexts, LoadOutcome } from '../load-plan.js'
import type { PooledConnection } from './request-pool.js'

/** Where a socket connects to. */
export type SocketAddress = { readonly host: string; readonly port: number; readonly isTls: boolean } | { readonly path: string }

/** How requests are written, and answers read, on one socket. */
export interface SocketCodec {
  /** Sent first on each connection; its replies are not counted. */
  readonly greeting?: { readonly bytes: string; readonly replies: number }
  request(key: string): string
  /** A reader for a new connection. */
  reader(): AnswerReader
}

export interface AnswerReader {
  /** Calls `answered` for each answer that `bytes` completes. @throws for bytes that are no answer. */
  read(bytes: Buffer, answered: (outcome: LoadOutcome, error?: string) => void): void
  /** Whether the server ends the connection after the last answer. */
  readonly isLast?: boolean
}

/** A server that cannot be reached is tried again after this. */
const RECONNECT_MS = 50

/** One socket that writes requests and reads their answers in order. After it breaks the next request opens it again. */
export class SocketConnection implements PooledConnection {
  readonly #address: SocketAddress
  readonly #codec: SocketCodec
  readonly #errors: ErrorTexts
  readonly #waiting: ((outcome: LoadOutcome) => void)[] = []
  #socket: Socket | undefined
  #unread = 0
  #brokeMs = Number.NEGATIVE_INFINITY
  #lastError = ''
  #isClosed = false

  constructor(address: SocketAddress, codec: SocketCodec, errors: ErrorTexts) {
    this.#address = address
    this.#codec = codec
    this.#errors = errors
  }

  get outstanding(): number {
    return this.#waiting.length
  }

  send(key: string): Promise<LoadOutcome> {
    if (this.#socket === undefined && performance.now() - this.#brokeMs < RECONNECT_MS) {
      // An answer in a later turn, so that a server that is away is not asked in an endless loop.
      return new Promise((resolve) => setTimeout(() => resolve(this.#errors.add(this.#lastError)), RECONNECT_MS))
    }
    const socket = this.#socket ?? this.#open()
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      socket.write(this.#codec.request(key))
    })
  }

  close(): void {
    this.#isClosed = true
    this.#socket?.destroy()
    for (const answer of this.#waiting.splice(0)) answer('error')
  }

  #open(): Socket {
    const address = this.#address
    const socket = 'port' in address && address.isTls ? connectTls({ ...address, ALPNProtocols: ['http/1.1'] }) : connectTcp(address)
    this.#socket = socket
    socket.setNoDelay(true)
    const { greeting } = this.#codec
    if (greeting !== undefined) socket.write(greeting.bytes)
    this.#unread = greeting?.replies ?? 0
    const reader = this.#codec.reader()
    socket.on('data', (bytes: Buffer) => {
      try {
        reader.read(bytes, (outcome, error) => this.#answered(outcome, error))
        if (reader.isLast) this.#broken(socket, 'the server ended the connection')
      } catch (error) {
        this.#broken(socket, (error as Error).message)
      }
    })
    socket.on('error', (error: NodeJS.ErrnoException) => this.#broken(socket, error.code ?? error.message))
    socket.on('close', () => this.#broken(socket, 'the server ended the connection'))
    return socket
  }

  #answered(outcome: LoadOutcome, error: string | undefined): void {
    if (this.#unread > 0) {
      this.#unread--
      if (error !== undefined) throw new Error(error)
      return
    }
    if (error !== undefined) this.#errors.add(error)
    this.#waiting.shift()?.(outcome)
  }

  #broken(socket: Socket, cause: string): void {
    if (this.#socket !== socket) return
    this.#socket = undefined
    socket.destroy()
    if (this.#isClosed) return
    // A connection that ends between requests is opened again at once.
    if (this.#waiting.length === 0) return
    this.#brokeMs = performance.now()
    this.#lastError = cause
    for (const answer of this.#waiting.splice(0)) answer(this.#errors.add(cause))
  }
}
