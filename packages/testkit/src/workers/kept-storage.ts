import type { ObjectState, ObjectStorage } from 'sluicegate/durable-objects'

/** The storage of one object in memory. It outlives the objects that are made over it, as storage outlives their eviction. */
export class KeptStorage implements ObjectStorage {
  readonly entries = new Map<string, unknown>()
  alarmAtMs: number | null = null
  /** How often entries were put. */
  puts = 0
  /** What a put waits for, and may fail by. */
  before: () => Promise<void> = () => Promise.resolve()

  list<Value>(): Promise<Map<string, Value>> {
    return Promise.resolve(structuredClone(this.entries) as Map<string, Value>)
  }

  async put(entries: Record<string, unknown>): Promise<void> {
    const copied = structuredClone(entries)
    await this.before()
    this.puts++
    for (const [key, value] of Object.entries(copied)) this.entries.set(key, value)
  }

  deleteAll(): Promise<void> {
    this.entries.clear()
    return Promise.resolve()
  }

  getAlarm(): Promise<number | null> {
    return Promise.resolve(this.alarmAtMs)
  }

  setAlarm(atMs: number): Promise<void> {
    this.alarmAtMs = atMs
    return Promise.resolve()
  }

  /** What an object over this storage is constructed with. Await `ready` before it is called, as the runtime does. */
  get state(): ObjectState & { readonly ready: Promise<unknown> } {
    const state = {
      storage: this,
      ready: Promise.resolve() as Promise<unknown>,
      blockConcurrencyWhile<Result>(callback: () => Promise<Result>): Promise<Result> {
        const done = callback()
        state.ready = done
        return done
      },
    }
    return state
  }
}
