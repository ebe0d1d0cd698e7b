import { build, type Plugin } from 'esbuild'

/** Source of a Worker, and the folder from which it imports. */
export interface WorkerSource {
  readonly contents: string
  readonly resolveDir: string
}

/** A bundle as `wrangler` makes it: one module, beside which stands the core, imported as `./core.wasm`. */
export async function bundledWorker({ contents, resolveDir }: WorkerSource): Promise<string> {
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
