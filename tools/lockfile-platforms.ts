import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { trackedFiles } from './check-import-circles.js'

/** The fields of a package in npm's lockfile that the checks read. */
export interface LockedPackage {
  readonly version?: string
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: boolean
  readonly optional?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
  readonly dev?: boolean
  readonly license?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

/** npm's lockfile, by the folder of each package. */
export interface Lockfile {
  readonly packages: Readonly<Record<string, LockedPackage>>
}

const SYSTEMS = ['aix', 'android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32']
const PROCESSORS = ['arm64', 'arm', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64', 'wasm32']

/** The binaries of other platforms that a locked package asks for by exact version, and that the lockfile does not name. */
export function missingPlatforms({ packages }: Lockfile): Record<string, LockedPackage> {
  const missing: Record<string, LockedPackage> = {}
  for (const [path, { optionalDependencies, dev, license }] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(optionalDependencies ?? {})) {
      const places = [`${path}/node_modules/${name}`, `node_modules/${name}`]
      if (places.some((place) => packages[place] !== undefined)) continue
      missing[`node_modules/${name}`] = {
        version,
        ...platformOf(name),
        ...(dev === true && { dev }),
        ...(license !== undefined && { license }),
        optional: true,
      }
    }
  }
  return missing
}

/** The names of binaries contain their platform: `@scope/binding-linux-arm64-musl`. */
function platformOf(name: string): LockedPackage {
  const words = name.split(/[^a-z0-9]+/)
  const os = SYSTEMS.filter((system) => words.includes(system))
  const cpu = PROCESSORS.filter((processor) => words.includes(processor))
  const libc = words.some((word) => word.startsWith('musl')) ? ['musl'] : words.some((word) => word.startsWith('gnu')) ? ['glibc'] : []
  return { ...(os.length > 0 && { os }), ...(cpu.length > 0 && { cpu }), ...(libc.length > 0 && { libc }) }
}

/** Faults of lockfiles: they have to install with `npm ci` from any registry, and only what was reviewed. */
export function checkLockfiles(): string[] {
  return trackedFiles(/(^|\/)package-lock\.json$/).flatMap((file) => lockfileFaults(file, JSON.parse(readFileSync(file, 'utf8'))))
}

/** The rule itself, for one lockfile: no download addresses, checksums, and every platform's binaries named. */
export function lockfileFaults(file: string, lockfile: Lockfile): string[] {
  const unnamed = Object.keys(missingPlatforms(lockfile)).map((path) => `${file}: ${path} is not named; "npm run lockfile" adds it`)
  const faults = Object.entries(lockfile.packages).flatMap(([path, { resolved, link, integrity, optional, os }]) => {
    if (!/(^|\/)node_modules\//.test(path) || link === true) return []
    const address = resolved === undefined ? [] : [`${file}: ${path} holds a download address`]
    // The author of the lockfile may never have fetched a binary for another platform.
    const checked = integrity !== undefined || (optional === true && os !== undefined)
    return checked ? address : [...address, `${file}: ${path} has no checksum`]
  })
  return [...faults, ...unnamed]
}

const WRONG = /^\d+ packages? (?:has|have) (?:an )?(?:invalid|missing) (?:registry signatures?|attestations?)/m

/**
 * Packages whose contents are not what their registry signed. Only in continuous integration: it asks for each package. A registry that has no
 * signatures has no faults either, and a line says so.
 */
export function checkSignatures(): string[] {
  if (process.env.CI === undefined) return []
  const { status, stdout, stderr } = spawnSync('npm', ['audit', 'signatures', '--fetch-retries=0', '--fetch-timeout=20000'], {
    encoding: 'utf8',
  })
  return signatureFaults(status, stdout + stderr)
}

/** The rule itself, for what `npm audit signatures` printed. */
export function signatureFaults(status: number | null, printed: string): string[] {
  if (WRONG.test(printed)) return [printed.trim()]
  if (status !== 0) console.log('         signatures were not checked: this registry has no keys for them, or cannot be reached')
  return []
}
