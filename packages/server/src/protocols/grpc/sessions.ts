import type { ServerHttp2Session, ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { clientKey } from '../../access.js'
import { type Guard, type Guarded, listen } from '../guard.js'
import { destroyLater, isGone, peerAddress, ping } from './live-session.js'
import { SessionTurns } from './session-turns.js'
import type { GrpcBounds } from './status.js'

/** `NGHTTP2_CANCEL` of HTTP/2. */
const CANCEL = 8
/** How often times are looked at; all of them are at least a second. */
const SWEEP_MS = 250
/** A connection that sends without beginning a call is sent a ping after this time. */
const PROBE_MS = 1_000
/** How long such a ping may take until it is written: for that time a client may leave all that was sent before unread. */
const PROBE_WRITTEN_MS = 3_000
/** How long a connection that is destroyed may take to close. */
const GOING_MS = 1_000
/** At the end new connections have this time to send a call. */
const FIRST_CALL_MS = 500
/** Bytes of a PING frame. */
const PING_BYTES = 17

/** Connections that a bound closed, by the reason. */
export type GrpcCuts = Record<'refused' | 'evicted' | 'mute' | 'unread' | 'broken' | 'held', number>

/** What is known of a connection. */
export interface SessionState {
  readonly address: string
  readonly socket: Socket
  readonly turns: SessionTurns
  /** When it was first seen to be destroyed, in sweeps. */
  goneAt: number | undefined
  /** When it was opened or was last heard of, in sweeps. */
  heardAt: number
  /** Whether its settings have arrived: it speaks HTTP/2. */
  ready: boolean
  /** Whether it has been asked if it is still there. */
  asked: boolean
  calls: number
  /** Whether it has had no call yet. */
  isNew: boolean
  /** Whether it is closed in the first moment without a call. */
  leaving: boolean
  streamingCalls: number
  /** Bytes that had been read when the last probe was sent, its answer included. */
  probedBytes: number
  /** When that was, in sweeps. */
  probedAt: number
  /** Bytes that had been written before the probe, until it is written. */
  writtenBytes: number | undefined
}

/** What is known of a call. */
interface CallState {
  readonly session: ServerHttp2Session
  readonly state: SessionState
  readonly isStreaming: boolean
  /** In sweeps. */
  readonly begunAt: number
  /** Of its incomplete message. */
  heldBytes: number
}

/** All connections and calls, with their bounds. Times are counted in sweeps, so that a call costs no reading of a clock. */
export class Sessions {
  readonly cuts: GrpcCuts = { refused: 0, evicted: 0, mute: 0, unread: 0, broken: 0, held: 0 }
  readonly #bounds: GrpcBounds
  readonly #sessions = new Map<ServerHttp2Session, SessionState>()
  readonly #byAddress = new Map<string, number>()
  readonly #calls = new Map<ServerHttp2Stream, CallState>()
  /** Those of them with one request that still have time, the oldest first. */
  readonly #timed = new Set<ServerHttp2Stream>()
  readonly #guard: Guard
  readonly #onStreamClose: Guarded
  readonly #timer: NodeJS.Timeout
  #now = 0
  #heldBytes = 0
  #emptied: (() => void) | undefined

  constructor(bounds: GrpcBounds, guard: Guard) {
    this.#bounds = bounds
    this.#guard = guard
    this.#onStreamClose = guard.listener((stream: ServerHttp2Stream) => this.#ended(stream))
    this.#timer = guard.every(SWEEP_MS, () => this.#sweep())
  }

  get open(): number {
    return this.#sessions.size
  }

  get inFlight(): number {
    return this.#calls.size
  }

  /** Takes in a connection over `socket`, or closes it or another one where there is no room. */
  add(session: ServerHttp2Session, socket: Socket): void {
    destroyLater(session, this.#guard)
    const address = clientKey(peerAddress(session))
    const { maxConnections, maxConnectionsPerAddress } = this.#bounds
    const ofAddress = this.#byAddress.get(address) ?? 0
    const room =
      ofAddress >= maxConnectionsPerAddress
        ? this.#evict((state) => state.address === address)
        : this.#sessions.size < maxConnections || this.#evict(() => true)
    this.#guard.on(session, 'error', () => {})
    if (!room) {
      this.cuts.refused++
      session.destroy()
      this.#guard.after(GOING_MS, () => socket.destroy())
      return
    }
    const state: SessionState = {
      address,
      socket,
      turns: new SessionTurns(socket, this.#guard),
      goneAt: undefined,
      heardAt: this.#now,
      ready: false,
      asked: false,
      calls: 0,
      isNew: true,
      streamingCalls: 0,
      leaving: false,
      probedBytes: 0,
      probedAt: this.#now,
      writtenBytes: undefined,
    }
    this.#sessions.set(session, state)
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + 1)
    this.#guard.once(session, 'remoteSettings', () => {
      state.ready = true
    })
    this.#guard.once(session, 'close', () => this.#remove(session, state))
  }

  /** When the connection of `stream` does what; undefined for one that has no place. */
  turnsOf({ session }: ServerHttp2Stream): SessionTurns | undefined {
    return session === undefined ? undefined : this.#sessions.get(session as ServerHttp2Session)?.turns
  }

  /** Takes in a call; false where there is no room for it. A call with one request has a bounded time. */
  begin(stream: ServerHttp2Stream, isStreaming: boolean): boolean {
    const session = stream.session as ServerHttp2Session | undefined
    const state = session === undefined ? undefined : this.#sessions.get(session)
    // A stream that is closed already closes no more.
    if (session === undefined || state === undefined || stream.destroyed) return false
    state.heardAt = this.#now
    state.asked = false
    const { maxCallsInAll, maxStreamingCalls } = this.#bounds
    if (this.#calls.size >= maxCallsInAll || (isStreaming && state.streamingCalls >= maxStreamingCalls)) return false
    state.calls++
    state.isNew = false
    if (isStreaming) state.streamingCalls++
    else this.#timed.add(stream)
    this.#calls.set(stream, { session, state, isStreaming, begunAt: this.#now, heldBytes: 0 })
    listen(stream, 'close', this.#onStreamClose)
    return true
  }

  /** The incomplete message of `stream` takes `bytes` of memory. */
  holds(stream: ServerHttp2Stream, bytes: number): void {
    const call = this.#calls.get(stream)
    if (call === undefined) return
    const more = bytes - call.heldBytes
    call.heldBytes = bytes
    this.#heldBytes += more
    if (more <= 0 || this.#heldBytes <= this.#bounds.maxHeldBytes || isGone(call.session)) return
    this.cuts.held++
    call.session.destroy()
  }

  #ended(stream: ServerHttp2Stream): void {
    const call = this.#calls.get(stream)
    if (call === undefined) return
    const { session, state, isStreaming } = call
    this.#heldBytes -= call.heldBytes
    this.#calls.delete(stream)
    this.#timed.delete(stream)
    state.calls--
    if (isStreaming) state.streamingCalls--
    state.heardAt = this.#now
    if (state.leaving && state.calls === 0) session.close()
  }

  /**
   * Closes each connection in the first moment in which it has no call, so that its client opens the next one elsewhere. A client that comes back
   * is served: it has found no other server.
   */
  leave(): void {
    for (const [session, state] of this.#sessions) {
      state.leaving = true
      if (state.calls === 0) session.close()
    }
  }

  /**
   * Closes each connection when its calls have ended; after `finishMs` those that are left are cut off. A new one is closed after its first call, for which
   * it has a moment: a client repeats a call by itself that was refused because its connection was closing, over a new connection, but no second time.
   */
  async close(finishMs: number): Promise<void> {
    const emptied = new Promise<void>((resolve) => {
      this.#emptied = resolve
      if (this.#sessions.size === 0) resolve()
    })
    for (const [session, state] of this.#sessions) {
      if (state.isNew) state.leaving = true
      else session.close()
    }
    const closing = this.#guard.after(Math.min(FIRST_CALL_MS, finishMs), () => {
      for (const session of this.#sessions.keys()) session.close()
    })
    const cutOff = this.#guard.after(finishMs, () => {
      for (const session of this.#sessions.keys()) session.destroy()
    })
    // The process waits for it.
    cutOff.ref()
    await emptied
    clearTimeout(closing)
    clearTimeout(cutOff)
    clearInterval(this.#timer)
  }

  #remove(session: ServerHttp2Session, { address, turns }: SessionState): void {
    if (!this.#sessions.delete(session)) return
    turns.leave()
    const left = (this.#byAddress.get(address) ?? 1) - 1
    if (left === 0) this.#byAddress.delete(address)
    else this.#byAddress.set(address, left)
    if (this.#sessions.size === 0) this.#emptied?.()
  }

  /** Closes the connection that has been without a call for the longest. */
  #evict(among: (state: SessionState) => boolean): boolean {
    let oldest: ServerHttp2Session | undefined
    let heardAt = Number.POSITIVE_INFINITY
    for (const [session, state] of this.#sessions) {
      if (isGone(session) || state.calls > 0 || state.heardAt >= heardAt || !among(state)) continue
      oldest = session
      heardAt = state.heardAt
    }
    if (oldest === undefined) return false
    this.cuts.evicted++
    oldest.destroy()
    return true
  }

  #sweep(): void {
    this.#now++
    const { headersMs, requestMs, silentMs, answerMs } = this.#bounds
    const since = (ms: number): number => this.#now - Math.max(1, Math.ceil(ms / SWEEP_MS))
    const overdue = since(requestMs)
    for (const stream of this.#timed) {
      if ((this.#calls.get(stream)?.begunAt ?? 0) > overdue) break
      this.#timed.delete(stream)
      if (!stream.headersSent) stream.close(CANCEL)
      else {
        // The response has not been read. What the connection leaves unread is held for it here.
        const session = stream.session
        if (session === undefined || isGone(session)) continue
        this.cuts.unread++
        session.destroy()
      }
    }
    const quiet = since(PROBE_MS)
    for (const [session, state] of this.#sessions) {
      if (isGone(session)) {
        // HTTP/2 waits for what it has written. An encrypted connection that failed never says that it is.
        state.goneAt ??= this.#now
        if (state.goneAt <= since(GOING_MS)) {
          state.socket.destroy()
          this.#remove(session, state)
        }
        continue
      }
      if (state.writtenBytes !== undefined && session.socket.bytesWritten !== state.writtenBytes) state.writtenBytes = undefined
      if (Math.max(state.heardAt, state.probedAt) <= quiet) this.#probe(session, state)
      if (state.writtenBytes !== undefined && state.probedAt <= since(PROBE_WRITTEN_MS)) {
        this.cuts.broken++
        session.destroy()
      } else if (!state.ready && state.heardAt <= since(headersMs)) {
        this.cuts.mute++
        session.destroy()
      } else if (state.asked && state.heardAt <= since(silentMs + answerMs)) {
        this.cuts.mute++
        session.destroy()
      } else if (!state.asked && state.ready && state.heardAt <= since(silentMs)) this.#ask(session, state)
    }
  }

  /**
   * Sends a ping to a connection that has sent something else than a call. After a frame that breaks the protocol, for example an oversized one, the
   * library beneath sends GOAWAY, reports nothing, and writes nothing more, also no ping.
   */
  #probe(session: ServerHttp2Session, state: SessionState): void {
    if (session.closed || state.writtenBytes !== undefined) return
    const { bytesRead, bytesWritten } = session.socket
    if (bytesRead === state.probedBytes) return
    const isSent = ping(session, this.#guard, (error) => {
      if (error === null) state.probedBytes += PING_BYTES
    })
    if (!isSent) return
    state.probedBytes = bytesRead
    state.probedAt = this.#now
    state.writtenBytes = bytesWritten
  }

  #ask(session: ServerHttp2Session, state: SessionState): void {
    state.asked = true
    if (session.closed) return
    ping(session, this.#guard, (error) => {
      if (error !== null) return
      state.asked = false
      state.heardAt = this.#now
    })
  }
}
