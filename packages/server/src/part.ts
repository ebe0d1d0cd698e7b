import type { Config, StopTimes } from 'sluicegate-config/config.js'

/** A changed configuration that a part can put in force: one of the two methods is called, once, and does not throw. */
export interface Prepared {
  commit(): void
  /** Closes what was made for it. */
  discard?(): void
}

/** A part of the service, with its own life. It is given what it needs, by name, when it is made. */
export interface Part {
  readonly name: string
  /** Opens what the part needs. The parts before it in the list have started. */
  start?(): void | Promise<void>
  /** All parts have started: begins what a service must not do that fails to start. */
  ready?(): void
  /** Prepares a changed configuration; throws when it cannot be used. */
  reload?(config: Config): Prepared
  /** The service is about to stop, and still answers. Resolves when it need not answer any more. */
  drain?(times: StopTimes): void | Promise<void>
  /** Finishes what is in flight and closes all. The parts before it in the list are still there. */
  stop?(times: StopTimes): void | Promise<void>
}

/** What the service is doing, for probes. */
export type Phase = 'starting' | 'ready' | 'stopping'

/** Parts in the order in which they start. They stop in reverse. */
export class Parts {
  #phase: Phase = 'starting'
  readonly #all: readonly Part[]
  #started: readonly Part[] = []
  #stopped: Promise<void> | undefined

  constructor(all: readonly Part[]) {
    this.#all = all
  }

  get phase(): Phase {
    return this.#phase
  }

  /** @throws what a part throws that cannot start; then those before it have stopped. */
  async start(): Promise<void> {
    try {
      for (const part of this.#all) {
        await part.start?.()
        this.#started = [part, ...this.#started]
      }
    } catch (error) {
      await this.#stopStarted({ drainMs: 0, finishMs: 0 })
      throw error
    }
    for (const part of this.#all) part.ready?.()
    this.#phase = 'ready'
  }

  /**
   * Prepares a changed configuration in all parts.
   *
   * @throws what the first part throws that cannot use it; then the others have discarded it.
   */
  reload(config: Config): Prepared {
    const prepared: Prepared[] = []
    const discard = (): void => {
      for (const each of prepared) each.discard?.()
    }
    try {
      for (const part of this.#all) {
        const each = part.reload?.(config)
        if (each !== undefined) prepared.push(each)
      }
    } catch (error) {
      discard()
      throw error
    }
    return {
      commit() {
        for (const each of prepared) each.commit()
      },
      discard,
    }
  }

  /**
   * Once; later calls wait for the first.
   *
   * @param phase what the service is said to do meanwhile.
   */
  stop(times: StopTimes, phase: Phase = 'stopping'): Promise<void> {
    this.#phase = phase
    this.#stopped ??= this.#stop(times)
    return this.#stopped
  }

  async #stop(times: StopTimes): Promise<void> {
    await Promise.all(this.#started.map((part) => part.drain?.(times)))
    await this.#stopStarted(times)
  }

  async #stopStarted(times: StopTimes): Promise<void> {
    for (const part of this.#started) await part.stop?.(times)
  }
}

/** A part that calls `tick` every `ms` from the start on. @param tick false: there is more, for which it is called again in the next turn. */
export function ticking(name: string, ms: number, tick: () => unknown): Part {
  let timer: NodeJS.Timeout | undefined
  let next: NodeJS.Immediate | undefined
  const go = (): void => {
    next = tick() === false ? setImmediate(go).unref() : undefined
  }
  return {
    name,
    ready: () => {
      timer = setInterval(() => next === undefined && go(), ms).unref()
    },
    stop: () => {
      clearInterval(timer)
      clearImmediate(next)
    },
  }
}
