import type { ObjectState, ObjectStorage } from 'sluicegate/durable-objects'

/** The storage of one object in memory. It outlives the objects that are made over it, as storage outlives their eviction. */
export class KeptStorage implements ObjectStorage {
  readonly entries = new Map<string, unknown>()
  alarmAtMs: number | null = null
  /** How often entries were put. */
  puts = 0
  /** What a put waits for, and may fail by. */
  before: () => Promise<void> = () => Promise.resolve()
  private puttingNow: Promise<void> = Promise.resolve()

  list<Value>(): Promise<Map<string, Value>> {
    return Promise.resolve(structuredClone(this.entries) as Map<string, Value>)
  }

  /** Resolves when all that was put until now is stored, and rejects when some of it could not be: the output gate, which holds back answers. */
  get gate(): Promise<void> {
    return this.puttingNow
  }

  put(entries: Record<string, unknown>): Promise<void> {
    const stored = this.store(entries)
    const before = this.puttingNow
    this.puttingNow = before.then(() => stored)
    this.puttingNow.catch(() => undefined)
    return stored
  }

  /** What an object that was evicted has put no longer counts. */
  openGate(): void {
    this.puttingNow = Promise.resolve()
  }

  private async store(entries: Record<string, unknown>): Promise<void> {
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
