import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { posix } from 'node:path'
import { faultsOfTool } from './faults-of-command.js'
import { importsOf } from './imports-of.js'

const FOLDER = '.cache/packed'
const FOLDER_OF = { sluicegate: 'packages/sluicegate', 'sluicegate-server': 'packages/server' } as const
const PUBLISHED = ['sluicegate', 'sluicegate-server'] as const
/** Only the library is imported; the server is a program. */
const IMPORTED = new Set<string>(['sluicegate'])

/** Packs the packages and checks them as published: manifest, entry points, types. */
export function checkPackages(): string[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  return PUBLISHED.flatMap((name) => {
    const { filename, files } = pack(name)
    const strays = files
      .filter(({ path }) => /\.test\.|\.tsbuildinfo$|^src\/|(^|\/)testing\//.test(path))
      .map(({ path }) => `${name}: ${path} would be published`)
    const loose = looseImports(name, new Set(files.map(({ path }) => path)))
    const publint = faultsOfTool('publint', 'run', `${FOLDER}/${filename}`, '--strict')
    const attw = IMPORTED.has(name) ? faultsOfTool('attw', `${FOLDER}/${filename}`, '--profile', 'strict') : []
    return [...strays, ...loose, ...publint, ...attw]
  })
}

/** Imports, also of types, from packed files to files that are not packed: they would fail only where the package is installed. */
function looseImports(name: (typeof PUBLISHED)[number], packed: ReadonlySet<string>): string[] {
  const modules = [...packed].filter((path) => /\.(c?js|d\.c?ts)$/.test(path))
  return modules.flatMap((path) => {
    const found = importsOf(path, readFileSync(`${FOLDER_OF[name]}/${path}`, 'utf8')).filter(({ specifier }) => specifier.startsWith('.'))
    // Declarations of the CommonJS form stand alone: its code is in bundles.
    const named = (specifier: string): string => (path.endsWith('.d.cts') ? specifier.replace(/\.cjs$/, '.d.cts') : specifier)
    const missing = found.filter(({ specifier }) => !packed.has(posix.join(posix.dirname(path), named(specifier))))
    return missing.map(({ specifier, line }) => `${name}: ${path}:${line} imports '${specifier}', which is not packed`)
  })
}

interface Packed {
  readonly filename: string
  readonly files: readonly { readonly path: string }[]
}

function pack(name: string): Packed {
  const printed = execFileSync('npm', ['pack', '--json', '-w', name, '--pack-destination', FOLDER], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [packed] = JSON.parse(printed) as [Packed]
  return packed
}
