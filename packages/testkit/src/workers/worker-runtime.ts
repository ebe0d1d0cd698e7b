import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { Miniflare } from 'miniflare'

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
