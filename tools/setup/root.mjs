import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** An error that the user can correct: shown without a stack. */
export class Refusal extends Error {}

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

const NOT_SOURCES = new Set(['node_modules', 'dist', 'bundle', 'schema', 'docs', 'results', 'versus', 'reference'])
const GENERATED = /\.gen\.ts$|\.wasm$/

/** Every source file below `folder`, as paths from the root: nothing generated, no results. */
export function sourcesBelow(folder) {
  const found = []
  for (const entry of readdirSync(join(ROOT, folder), { withFileTypes: true })) {
    if (NOT_SOURCES.has(entry.name) || entry.name.startsWith('.')) continue
    const path = join(folder, entry.name)
    if (entry.isDirectory()) found.push(...sourcesBelow(path))
    else if (!GENERATED.test(entry.name)) found.push(path)
  }
  return found.sort()
}
