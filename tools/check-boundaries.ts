import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { BOUNDARIES, type Boundary } from './boundaries.js'
import { importsOf, trackedFiles } from './imports-of.js'

/** Imports in the working tree that cross a boundary. */
export function checkBoundaries(): string[] {
  const files = trackedFiles(/^(packages|bench|chaos|lab|site|deploy|tools|examples)\/.*\.(ts|mts|mjs|js)$/)
  return files.flatMap((file) => boundaryFaults(file, readFileSync(file, 'utf8')))
}

/** Imports of one module that cross a boundary. */
export function boundaryFaults(file: string, source: string, boundaries: readonly Boundary[] = BOUNDARIES): string[] {
  const covering = boundaries.filter(({ files }) => files.test(file))
  if (covering.length === 0) return []
  return importsOf(file, source).flatMap((found) => {
    const edge = { ...found, from: file, target: targetOf(file, found.specifier) }
    const crossed = covering.filter(({ allows }) => !allows(edge))
    return crossed.map(({ why }) => `${file}:${found.line} imports '${found.specifier}', but ${why}`)
  })
}

function targetOf(file: string, specifier: string): string {
  if (!specifier.startsWith('.')) return specifier
  return posix.join(posix.dirname(file), specifier).replace(/\.js$/, '.ts')
}
