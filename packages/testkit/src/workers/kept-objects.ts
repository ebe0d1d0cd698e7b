import type { LimiterObject, ObjectNamespace, ObjectState } from 'sluicegate/durable-objects'
import { KeptStorage } from './kept-storage.js'

type ObjectClass = new (state: ObjectState) => LimiterObject

interface Kept {
  readonly storage: KeptStorage
  object: Promise<LimiterObject> | undefined
}

/** Objects of one class in this process, each over its own storage. */
export class KeptObjects implements ObjectNamespace {
  /** By name. */
  readonly kept = new Map<string, Kept>()
  private readonly Made: ObjectClass
  /** What happens to a request before its object gets it. */
  before: () => Promise<void> = () => Promise.resolve()
  requests = 0

  constructor(Made: ObjectClass) {
    this.Made = Made
  }

  idFromName(name: string): object {
    return { name }
  }

  get({ name }: { readonly name: string }) {
    return {
      fetch: async (url: string, init: { method: string; body: string }): Promise<Response> => {
        this.requests++
        await this.before()
        const response = await (await this.objectOf(name)).fetch(new Request(url, init))
        await this.kept.get(name)?.storage.gate
        return response
      },
    }
  }

  /** All objects lose their memory, and keep their storage. */
  evict(): void {
    for (const kept of this.kept.values()) kept.object = undefined
  }

  /** Alarms that are due by `nowMs`. */
  async ring(nowMs: number): Promise<void> {
    for (const [name, { storage }] of this.kept) {
      if (storage.alarmAtMs === null || storage.alarmAtMs > nowMs) continue
      storage.alarmAtMs = null
      await (await this.objectOf(name)).alarm()
    }
  }

  private objectOf(name: string): Promise<LimiterObject> {
    let kept = this.kept.get(name)
    if (kept === undefined) {
      kept = { storage: new KeptStorage(), object: undefined }
      this.kept.set(name, kept)
    }
    kept.object ??= this.made(kept.storage)
    return kept.object
  }

  private async made(storage: KeptStorage): Promise<LimiterObject> {
    const { state } = storage
    const made = new this.Made(state)
    await state.ready
    return made
  }
}
