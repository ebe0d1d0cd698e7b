import type { KeyDisplay } from 'sluicegate-config/config.js'
import { inSlices } from '../later-turns.js'
import type { Part } from '../part.js'
import type { Guard } from '../protocols/guard.js'
import { eventData } from './event-data.js'
import { type SampledEngine, Sampler, type Shown } from './sampler.js'
import { Stream } from './stream.js'

/** The page as one listener shows it: what it samples, and who reads it. */
export interface ListenerPage {
  readonly sampler: Sampler
  readonly stream: Stream
}

/** What a {@link LivePage} is made with. */
export interface LivePageParts extends Omit<Shown, 'isAdmin'> {
  readonly engine: SampledEngine
  /** How keys are shown on the HTTP listener. */
  readonly keys: KeyDisplay
  /** The doors of the two listeners. */
  readonly guards: Readonly<Record<'http' | 'admin', Guard>>
  /** Whether there is an admin listener. */
  readonly hasAdmin: boolean
  readonly sampleMs: number
}

/** The live page, which the HTTP listener and the admin listener show in different ways. */
export class LivePage implements Part {
  readonly name = 'page'
  readonly http: ListenerPage
  readonly admin: ListenerPage
  readonly #served: readonly ListenerPage[]
  readonly #guard: Guard
  readonly #sampleMs: number
  /** Pages whose sample is being made. */
  readonly #sending = new Set<ListenerPage>()
  #sampling: NodeJS.Timeout | undefined

  constructor({ engine, keys, guards, hasAdmin, sampleMs, ...shown }: LivePageParts) {
    this.http = { sampler: new Sampler(engine, keys, shown), stream: new Stream(guards.http) }
    // Its callers may reset and block keys, so they see which they are.
    this.admin = { sampler: new Sampler(engine, 'shown', { ...shown, isAdmin: true }), stream: new Stream(guards.admin) }
    if (keys === 'off') this.#served = []
    else this.#served = hasAdmin ? [this.http, this.admin] : [this.http]
    this.#guard = guards.http
    this.#sampleMs = sampleMs
  }

  get isServed(): boolean {
    return this.#served.length > 0
  }

  /** Whether any page is open. */
  get isRead(): boolean {
    return this.#served.some(({ stream }) => stream.isRead)
  }

  ready(): void {
    this.#sampling = this.#guard.every(this.#sampleMs, () => {
      for (const page of this.#served) {
        if (!page.stream.isRead) page.sampler.tick()
        else if (!this.#sending.has(page)) void this.#send(page)
      }
    })
  }

  async #send(page: ListenerPage): Promise<void> {
    this.#sending.add(page)
    try {
      page.stream.send(await inSlices(eventData(page.sampler.sampling())))
    } catch (error) {
      this.#guard.caught(error)
    } finally {
      this.#sending.delete(page)
    }
  }

  drain(): void {
    clearInterval(this.#sampling)
    for (const { stream } of this.#served) stream.end()
  }
}
