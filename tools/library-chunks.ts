import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { decode, encode } from '@jridgewell/sourcemap-codec'
import { type ModuleInfo, type OutputChunk, rollup } from 'rollup'
import { SHARED_TEXTS } from './shared-text.js'

/** A file made of several modules of the library. */
export interface Chunk {
  /** Within `dist`, for example `redis/index.js`. */
  readonly file: string
  readonly code: string
  /** Its source map, with the texts of the sources, which are not packed. */
  readonly map: string
  /** Other chunks that it imports, by their files. */
  readonly imports: readonly string[]
}

/** Compressors look back 32 KiB: a chunk and its twin in the other form, which stand beside each other in a packed package, are to fit. */
const MOST_BYTES = 28_000

/**
 * The library as ES modules for its entry points: modules that the same entry points need are one file, up to what a compressor looks back.
 * No entry point loads code that it does not need, and chunks import each other in no circle.
 *
 * @param entries files of `dist` without `.js`, for example `redis/index`.
 */
export async function libraryChunks(dist: string, entries: readonly string[]): Promise<Chunk[]> {
  const bundle = await rollup({
    input: Object.fromEntries(entries.map((entry) => [entry, `${dist}/${entry}.js`])),
    // Peers are loaded from the caller's installation, the core of Workers by their bundler.
    external: (id) => id.endsWith('.wasm') || (!/^[./]/.test(id) && !id.startsWith(dist)),
    onwarn(warning) {
      if (warning.code !== 'EMPTY_BUNDLE') throw new Error(warning.message)
    },
    plugins: [{ name: 'source-maps', load: withMap }],
  })
  const { output } = await bundle.generate({
    format: 'es',
    manualChunks: chunkOf(entries),
    entryFileNames: '[name].js',
    chunkFileNames: 'shared/[name].js',
    hoistTransitiveImports: false,
    paths: (id) => (id.endsWith('.wasm') ? `../${posix.basename(id)}` : id),
    generatedCode: { preset: 'es2015', symbols: false },
    minifyInternalExports: false,
    sourcemap: 'hidden',
    // What the paths in the maps are relative to.
    dir: dist,
  })
  await bundle.close()
  const chunks = output.filter((file): file is OutputChunk => file.type === 'chunk')
  return chunks.map(({ fileName, code, map, imports }) => ({
    file: fileName,
    code,
    map: JSON.stringify({ ...map, names: [], mappings: byLine(map?.mappings ?? '') }),
    imports: imports.filter((file) => chunks.some((chunk) => chunk.fileName === file)),
  }))
}

/** A compiled module and the map that the compiler wrote beside it. */
function withMap(id: string): { code: string; map: string } {
  return { code: readFileSync(id, 'utf8'), map: readFileSync(`${id}.map`, 'utf8') }
}

/** Where each line, and each piece of a line that comes from another line, stands in the sources: all columns would be a third of the package. */
function byLine(mappings: string): string {
  const lines = decode(mappings).map((segments) =>
    segments.filter(([, source, line], i) => {
      const [, sourceBefore, lineBefore] = segments[i - 1] ?? []
      return source !== sourceBefore || line !== lineBefore
    }),
  )
  return encode(lines)
}

/** Which chunk a module goes to; entry points stay files of their own. */
function chunkOf(entries: readonly string[]) {
  let chunks: ReadonlyMap<string, string> | undefined
  return (
    id: string,
    { getModuleInfo, getModuleIds }: { getModuleInfo(id: string): ModuleInfo | null; getModuleIds(): Iterable<string> },
  ) => {
    chunks ??= assigned(
      [...getModuleIds()].flatMap((each) => getModuleInfo(each) ?? []),
      entries,
    )
    return chunks.get(id)
  }
}

function assigned(modules: readonly ModuleInfo[], entries: readonly string[]): Map<string, string> {
  const byId = new Map(modules.map((module) => [module.id, module]))
  const neededBy = new Map<string, string[]>()
  const inOrder: ModuleInfo[] = []
  for (const entry of modules.filter(({ isEntry }) => isEntry)) {
    const seen = new Set<string>()
    const visit = (id: string): void => {
      const module = byId.get(id)
      if (module === undefined || module.isExternal || seen.has(id)) return
      seen.add(id)
      module.importedIds.forEach(visit)
      if (!neededBy.has(id)) inOrder.push(module)
      neededBy.set(id, [...(neededBy.get(id) ?? []), entry.id])
    }
    visit(entry.id)
  }
  if (inOrder.filter(({ isEntry }) => isEntry).length !== entries.length) throw new Error('an entry point is imported by no name')
  const open = new Map<string, { name: string; bytes: number }>()
  const chunks = new Map<string, string>()
  // What is imported comes first: pieces of a group import only earlier ones.
  for (const module of inOrder) {
    if (module.isEntry) continue
    const shared = Object.keys(SHARED_TEXTS).find((name) => SHARED_TEXTS[name]?.test(module.id))
    if (shared !== undefined) {
      chunks.set(module.id, shared)
      continue
    }
    const group = (neededBy.get(module.id) ?? []).join()
    const bytes = module.code?.length ?? 0
    const last = open.get(group)
    if (last === undefined || last.bytes + bytes > MOST_BYTES) open.set(group, { name: posix.basename(module.id, '.js'), bytes })
    else last.bytes += bytes
    chunks.set(module.id, (open.get(group) as { name: string }).name)
  }
  return chunks
}
