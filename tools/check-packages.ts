import { readFileSync, rmSync } from 'node:fs'
import { posix } from 'node:path'
import { importsOf } from './check-import-circles.js'
import { faultsOfTool } from './faults-of-command.js'
import { type Packed, packed } from './packed.js'
import { entriesOf, FOLDER_OF, type Published } from './published.js'

const FOLDER = '.cache/packed'
/** Only the library is imported; the server is a program. */
const IMPORTED = new Set<Published>(['sluicegate'])
/** The most bytes of each, as downloaded and as installed. */
const MOST_BYTES: Readonly<Record<Published, { readonly size: number; readonly unpackedSize: number }>> = {
  // Half of it are source maps.
  sluicegate: { size: 1_282_000, unpackedSize: 6_130_000 },
  // What it uses of the library is in it.
  'sluicegate-server': { size: 685_500, unpackedSize: 2_515_000 },
}

/** Packs the packages and checks them as published: manifest, entry points, types, weight. */
export async function checkPackages(): Promise<string[]> {
  rmSync(FOLDER, { recursive: true, force: true })
  const faults: string[] = []
  for (const name of Object.keys(FOLDER_OF) as Published[]) {
    const found = await packed(name, FOLDER)
    const strays = found.files
      .filter(({ path }) => /\.test\.|\.tsbuildinfo$|^src\//.test(path))
      .map(({ path }) => `${name}: ${path} would be published`)
    const publint = faultsOfTool('publint', 'run', `${FOLDER}/${found.filename}`, '--strict')
    const attw = IMPORTED.has(name) ? typesFaults(`${FOLDER}/${found.filename}`) : []
    faults.push(...weightFaults(name, found), ...saidWeights(name, found), ...strays)
    faults.push(...looseImports(name, found), ...foreignTypes(name, found), ...publint, ...attw)
  }
  return faults
}

/** Entry points for Cloudflare's runtime are ES modules alone. */
const MODULES_ALONE = ['./durable-objects', './workers']

function typesFaults(file: string): readonly string[] {
  return [
    ...faultsOfTool('attw', file, '--profile', 'strict', '--exclude-entrypoints', ...MODULES_ALONE),
    ...faultsOfTool('attw', file, '--profile', 'esm-only', '--entrypoints', ...MODULES_ALONE),
  ]
}

function weightFaults(name: Published, found: Packed): string[] {
  return (['size', 'unpackedSize'] as const)
    .filter((each) => found[each] > MOST_BYTES[name][each])
    .map(
      (each) =>
        `${name}: ${found[each]} bytes (${each} of npm pack), more than ${MOST_BYTES[name][each]}; \`npm run pack\` leaves the files in .cache/packages`,
    )
}

/** What READMEs say of the weight. */
function saidWeights(name: Published, { size, unpackedSize }: Packed): string[] {
  const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)
  const words = `${megabytes(size)} MB to download and ${megabytes(unpackedSize)} MB installed`
  const files = [`${FOLDER_OF[name]}/README.md`, ...(name === 'sluicegate' ? ['README.md'] : [])]
  return files.filter((file) => !readFileSync(file, 'utf8').includes(words)).map((file) => `${file} has to say: ${words}`)
}

/** Imports, also of types, from packed files to files that are not packed: they would fail only where the package is installed. */
function looseImports(name: Published, { files, folder }: Packed): string[] {
  const packed = new Set(files.map(({ path }) => path))
  return [...packed]
    .filter((path) => /\.(js|d\.ts)$/.test(path))
    .flatMap((path) => {
      const found = importsOf(path, readFileSync(`${folder}/${path}`, 'utf8')).filter(({ specifier }) => specifier.startsWith('.'))
      // Some names are declared apart from the code that exports them.
      const named = (specifier: string): string => (path.endsWith('.d.ts') ? specifier.replace(/\.js$/, '.d.ts') : specifier)
      const missing = found.filter(({ specifier }) => !packed.has(posix.join(posix.dirname(path), named(specifier))))
      return missing.map(({ specifier, line }) => `${name}: ${path}:${line} imports '${specifier}', which is not packed`)
    })
}

/** Entry points whose types need more than their own framework: who uses them has installed no other one. */
function foreignTypes(name: Published, { files, folder }: Packed): string[] {
  if (!IMPORTED.has(name)) return []
  const declared = new Map(
    files
      .filter(({ path }) => path.endsWith('.d.ts'))
      .map(({ path }) => [path, importsOf(path, readFileSync(`${folder}/${path}`, 'utf8')).map(({ specifier }) => specifier)] as const),
  )
  const packagesOf = (path: string, seen: Set<string>): string[] => {
    if (seen.has(path)) return []
    seen.add(path)
    return (declared.get(path) ?? []).flatMap((specifier) => {
      if (specifier.startsWith('.')) return packagesOf(posix.join(posix.dirname(path), specifier.replace(/\.js$/, '.d.ts')), seen)
      return specifier.startsWith('node:') ? [] : specifier
    })
  }
  return entriesOf(folder).flatMap(({ import: { types } }) => {
    const needed = new Set(packagesOf(posix.normalize(types), new Set()))
    return needed.size > 1 ? [`${name}: ${types} needs ${[...needed].join(' and ')}: an entry point may need its own framework alone`] : []
  })
}
