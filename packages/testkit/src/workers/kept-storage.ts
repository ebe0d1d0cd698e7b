import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { Miniflare } from 'miniflare'
import type { LimiterObject, ObjectNamespace, ObjectState } from 'sluicegate/durable-objects'

type StorageOfObject = ObjectState['storage']

/** The storage of one object in memory. It outlives the objects that are made over it, as storage outlives their eviction. */
export class KeptStorage implements StorageOfObject {
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

  async delete(names: string[]): Promise<number> {
    await this.before()
    return names.filter((name) => this.entries.delete(name)).length
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

/** Source of a Worker, and the folder from which it imports. */
interface WorkerSource {
  readonly contents: string
  readonly resolveDir: string
}

/** A bundle as `wrangler` makes it: one module, beside which stands the core, imported as `./core.wasm`. */
async function bundledWorker({ contents, resolveDir }: WorkerSource): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir },
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*'],
    plugins: [wasmBeside],
    outfile: 'worker.js',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

const wasmBeside: Plugin = {
  name: 'wasm beside the bundle',
  setup: ({ onResolve }) => onResolve({ filter: /\.wasm$/ }, () => ({ path: './core.wasm', external: true })),
}

const { resolve } = createRequire(import.meta.url)

/** What {@link WorkerRuntime.start} takes beside the source. */
export interface RuntimeOptions {
  /** How many Workers of the same source use the objects of the first. Default 1. */
  readonly workers?: number
  /** Where objects store what outlives the runtime. Default: nowhere. */
  readonly storage?: string
}

/** Cloudflare's own runtime, `workerd`, with Workers whose class `Limits` of Durable Objects is bound as `LIMITS`. */
export class WorkerRuntime {
  /** The bundled Worker. */
  readonly bundle: string
  /** Of 127.0.0.1: requests over it go to the first Worker. */
  readonly port: number
  private readonly miniflare: Miniflare
  /** Of each Worker itself: `getWorker` of Miniflare takes milliseconds of the processor for each request. */
  private readonly urls: readonly URL[]
  private isStopped = false

  private constructor(bundle: string, miniflare: Miniflare, urls: readonly URL[]) {
    this.bundle = bundle
    this.port = Number(urls[0]?.port)
    this.miniflare = miniflare
    this.urls = urls
  }

  static async start(source: WorkerSource, { workers = 1, storage }: RuntimeOptions = {}): Promise<WorkerRuntime> {
    const bundle = await bundledWorker(source)
    const core = await readFile(join(dirname(resolve('sluicegate/package.json')), 'core.wasm'))
    const [first, ...others] = Array.from({ length: workers }, (_, i) => ({
      name: `worker-${i}`,
      compatibilityDate: '2026-04-01',
      unsafeDirectSockets: [{ host: '127.0.0.1', port: 0 }],
      modules: [
        { type: 'ESModule' as const, path: 'worker.js', contents: bundle },
        { type: 'CompiledWasm' as const, path: 'core.wasm', contents: core },
      ],
      durableObjects: { LIMITS: { className: 'Limits', useSQLite: true, ...(i > 0 && { scriptName: 'worker-0' }) } },
    }))
    if (first === undefined) throw new RangeError('a runtime has at least one Worker')
    const persist = storage === undefined ? {} : { durableObjectsPersist: storage }
    const miniflare = new Miniflare({ ...persist, host: '127.0.0.1', workers: [first, ...others] })
    await miniflare.ready
    const urls = await Promise.all([first, ...others].map(({ name }) => miniflare.unsafeGetDirectURL(name)))
    return new WorkerRuntime(bundle, miniflare, urls)
  }

  /** Sends a request to Worker `i`. */
  async fetch(path: string, headers: Readonly<Record<string, string>> = {}, i = 0): Promise<Response> {
    return fetch(new URL(path, this.urls[i]), { headers })
  }

  async stop(): Promise<void> {
    if (this.isStopped) return
    this.isStopped = true
    await this.miniflare.dispose()
  }
}
