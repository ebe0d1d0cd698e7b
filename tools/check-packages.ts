import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { faultsOfTool } from './faults-of-command.js'

const FOLDER = '.cache/packed'
const PUBLISHED = ['sluicegate', 'sluicegate-server'] as const
/** Only the library is imported; the server is a program. */
const IMPORTED = new Set<string>(['sluicegate'])

/** Packs what would be published, and looks at that: its manifest, its entry points, the types that others would see. */
export function checkPackages(): string[] {
  rmSync(FOLDER, { recursive: true, force: true })
  mkdirSync(FOLDER, { recursive: true })
  return PUBLISHED.flatMap((name) => {
    const { filename, files } = pack(name)
    const strays = files
      .filter(({ path }) => /\.test\.|\.tsbuildinfo$|^src\//.test(path))
      .map(({ path }) => `${name}: ${path} would be published`)
    const publint = faultsOfTool('publint', 'run', `${FOLDER}/${filename}`, '--strict')
    const attw = IMPORTED.has(name) ? faultsOfTool('attw', `${FOLDER}/${filename}`, '--profile', 'esm-only') : []
    return [...strays, ...publint, ...attw]
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
