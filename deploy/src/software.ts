import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'

/** A part of an executable or an image, as CycloneDX lists it. */
export interface Component {
  readonly type: 'library' | 'platform'
  readonly name: string
  readonly version: string
  readonly purl: string
  readonly licenses?: readonly { readonly license: { readonly id: string } }[]
}

/** Packages of npm, by the folders in which they are installed. */
export function componentsOfPackages(folders: readonly string[]): Component[] {
  return folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${ROOT}${folder}/package.json`, 'utf8'))
    const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`
    return { type: 'library', name, version, purl, ...(typeof license === 'string' && { licenses: [{ license: { id: license } }] }) }
  })
}

/** Node.js as npm has it for a processor. */
export function componentOfNode(version: string): Component {
  return { type: 'platform', name: 'node', version, purl: `pkg:generic/node@${version}`, licenses: [{ license: { id: 'MIT' } }] }
}

/** A package of this Debian that files in the image come from. */
export interface SystemPackage {
  readonly component: Component
  /** What dpkg knows of it: scanners find it in the image. */
  readonly status: string
  readonly copyright: string
}

/** The Debian packages of files; none on a system without dpkg. */
export function systemPackagesOf(files: readonly string[]): SystemPackage[] {
  if (!existsSync('/usr/bin/dpkg-query')) return []
  const names = files.map((file) => ownerOf(file)).filter((name) => name !== undefined)
  return [...new Set(names)].sort().map((name) => {
    const status = execFileSync('dpkg-query', ['--status', name], { encoding: 'utf8' })
    const version = /^Version: (.*)$/m.exec(status)?.[1] ?? ''
    const [plain = name] = name.split(':')
    const purl = `pkg:deb/debian/${plain}@${encodeURIComponent(version)}`
    const copyright = `/usr/share/doc/${plain}/copyright`
    return {
      component: { type: 'library', name: plain, version, purl },
      status,
      copyright: existsSync(copyright) ? readFileSync(copyright, 'utf8') : '',
    }
  })
}

/** Libraries are installed below /usr, and found in /lib, which leads there. */
function ownerOf(file: string): string | undefined {
  for (const path of [file, `/usr${file}`]) {
    try {
      return /^(\S+): /.exec(execFileSync('dpkg-query', ['--search', path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }))?.[1]
    } catch {
      // dpkg knows it by the other path, or not.
    }
  }
  return undefined
}

/** A bill of materials in CycloneDX 1.5, the same for the same parts. */
export function billOfMaterials(components: readonly Component[], sourceDateS: number): string {
  const component = { type: 'application', name: 'sluicegate', version: version(), purl: `pkg:npm/sluicegate-server@${version()}` }
  const bill = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: { timestamp: new Date(sourceDateS * 1_000).toISOString(), component: { 'bom-ref': component.purl, ...component } },
    components: components.map((each) => ({ 'bom-ref': each.purl, ...each })),
    dependencies: [{ ref: component.purl, dependsOn: components.map(({ purl }) => purl) }],
  }
  return `${JSON.stringify(bill, null, 2)}\n`
}

/** The checkout. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Where what is built here stands. */
export const BUILT = `${ROOT}.cache/deploy/`

/** Folders with a package.json and a lockfile of their own: what is built with, and what only tests use. */
type Installed = 'deploy' | 'deploy/tested-with'

/** Where a file of the packages is that only such a folder installs. */
export function pathThere(name: string, folder: Installed = 'deploy'): string {
  return createRequire(`${ROOT}${folder}/package.json`).resolve(name)
}

/** Imports one of the packages that only such a folder installs. */
export async function importThere<Exports>(name: string, folder: Installed = 'deploy'): Promise<Exports> {
  return (await import(pathThere(name, folder))) as Exports
}

/** Installs what the folder's package.json names. */
export function installIn(folder: Installed): void {
  installFolder(`${ROOT}${folder}/`)
}

/** The version of what is built. */
export function version(): string {
  return JSON.parse(readFileSync(`${ROOT}packages/server/package.json`, 'utf8')).version
}

/**
 * Seconds since 1970 that archives state as the time of their files: those of `SOURCE_DATE_EPOCH`, else of the last commit. The same sources
 * give the same bytes.
 */
export function sourceDateS(): number {
  const named = process.env.SOURCE_DATE_EPOCH
  if (named !== undefined) return Number(named)
  return Number(spawnSync('git', ['log', '-1', '--format=%ct'], { cwd: ROOT, encoding: 'utf8' }).stdout)
}
