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
