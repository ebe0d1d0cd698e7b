import type { EventEmitter } from 'node:events'
import type { ListenerName } from 'sluicegate-config/config.js'
import type { Log } from '../log.js'

/** Faults of a protocol are logged once in this time. */
const LOG_EVERY_MS = 60_000

/** What a fault ends: a socket, a connection, a stream or a response. */
interface Closable {
  destroy(): unknown
}

declare const guarded: unique symbol

/** A listener that never throws, made by {@link Guard.listener}. */
export type Guarded = ((...args: unknown[]) => void) & { readonly [guarded]: true }

/** Attaches a listener that was made once for many emitters, so that a request costs no closure. */
export function listen(emitter: EventEmitter, event: string, listener: Guarded): void {
  emitter.on(event, listener)
}

/** {@link listen} before the listeners that are there. */
export function listenFirst(emitter: EventEmitter, event: string, listener: Guarded): void {
  emitter.prependListener(event, listener)
}

/** A listener inside of a promise, which it rejects where it throws. */
export function rejecting<Args extends unknown[]>(reject: (error: unknown) => void, act: (...args: Args) => void): Guarded {
  const listener = (...args: Args): void => {
    try {
      act(...args)
    } catch (error) {
      reject(error)
    }
  }
  return listener as unknown as Guarded
}

/**
 * The door of a protocol: every handler of an event, a timer or a callback of Node.js goes through it. An exception of one would end the process, and
 * so would the rejection of a promise that one returns. Here it closes the stream or connection that it came from; it is counted, and
 * logged once a minute with the number of those that were not. `guard.test.ts` finds handlers that go around it.
 */
export class Guard {
  readonly protocol: ListenerName
  /** Exceptions that were caught. Each is a fault of the service, whatever the client did. */
  faults = 0
  readonly #log: Pick<Log, 'error'>
  readonly #nowMs: () => number
  #loggedMs = Number.NEGATIVE_INFINITY
  #unlogged = 0

  constructor(protocol: ListenerName, log: Pick<Log, 'error'>, nowMs: () => number = () => performance.now()) {
    this.protocol = protocol
    this.#log = log
    this.#nowMs = nowMs
  }

  /** `emitter.on(event, act)`. A fault destroys the first argument that can be destroyed, such as a new connection, or else the emitter. */
  on<Args extends unknown[]>(emitter: EventEmitter, event: string, act: (...args: Args) => unknown): void {
    listen(
      emitter,
      event,
      this.listener((_, ...args: Args) => act(...args)),
    )
  }

  /** `emitter.once(event, act)`, likewise. */
  once<Args extends unknown[]>(emitter: EventEmitter, event: string, act: (...args: Args) => unknown): void {
    emitter.once(
      event,
      this.listener((_, ...args: Args) => act(...args)),
    )
  }

  /** A listener for any number of emitters. `act` gets the emitter before the arguments of the event. */
  listener<Emitter, Args extends unknown[]>(act: (emitter: Emitter, ...args: Args) => unknown): Guarded {
    const guard = this
    function listener(this: Emitter, ...args: Args): void {
      try {
        const done = act(this, ...args)
        if (done instanceof Promise) done.catch((error: unknown) => guard.caught(error, ...args, this))
      } catch (error) {
        guard.caught(error, ...args, this)
      }
    }
    return listener as unknown as Guarded
  }

  /** `act` for Node.js to call back: a fault destroys `closable` and returns undefined. */
  callback<Args extends unknown[], Result>(
    closable: Closable | undefined,
    act: (...args: Args) => Result,
  ): (...args: Args) => Result | undefined {
    return (...args) => {
      try {
        return act(...args)
      } catch (error) {
        this.caught(error, closable)
        return undefined
      }
    }
  }

  /** A timer that keeps no process alive. */
  every(everyMs: number, act: () => void): NodeJS.Timeout {
    return setInterval(this.callback(undefined, act), everyMs).unref()
  }

  /** A timer that keeps no process alive. */
  after(ms: number, act: () => void): NodeJS.Timeout {
    return setTimeout(this.callback(undefined, act), ms).unref()
  }

  /** Calls `act` in a later turn of the event loop. */
  later(act: () => void): void {
    setImmediate(this.callback(undefined, act))
  }

  /** Counts a fault and destroys the first of `from` that can be destroyed; without one, the call that failed has been answered. */
  caught(error: unknown, ...from: readonly unknown[]): void {
    this.faults++
    this.#report(error)
    try {
      from.find(isClosable)?.destroy()
    } catch (second) {
      this.#report(second)
    }
  }

  #report(error: unknown): void {
    const nowMs = this.#nowMs()
    if (nowMs - this.#loggedMs < LOG_EVERY_MS) {
      this.#unlogged++
      return
    }
    const unlogged = this.#unlogged
    this.#unlogged = 0
    this.#loggedMs = nowMs
    this.#log.error(
      { protocol: this.protocol, err: error, ...(unlogged > 0 && { unlogged }) },
      'a fault of the service, which one client noticed: please report it',
    )
  }
}

function isClosable(value: unknown): value is Closable {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Closable>).destroy === 'function'
}
