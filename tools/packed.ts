import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { publishablePackage } from './publishable-packages.js'
import type { Published } from './published.js'

/** A packed package, as npm describes it. */
export interface Packed {
  readonly filename: string
  /** Bytes, as downloaded and as installed. */
  readonly size: number
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
  /** The folder of which it was packed. */
  readonly folder: string
}

/** Packs a built package as it is published, into a folder. */
export async function packed(name: Published, target: string, home?: string): Promise<Packed> {
  mkdirSync(target, { recursive: true })
  const folder = await publishablePackage(name, home)
  const printed = execFileSync('npm', ['pack', resolve(folder), '--json', '--pack-destination', target], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const [described] = JSON.parse(printed) as [Packed]
  return { ...described, folder }
}

/** Unpacks a package, packed as it is published into `home`, into a project. */
export async function installPacked(name: Published, home: string, projects: readonly string[]): Promise<void> {
  const { filename } = await packed(name, home, join(home, 'packages'))
  for (const project of projects) {
    const folder = join(project, 'node_modules', name)
    mkdirSync(folder, { recursive: true })
    execFileSync('tar', ['xzf', join(home, filename), '-C', folder, '--strip-components=1'])
  }
}

/** Puts packages of the workspace, such as frameworks, beside it. */
export function linkPeers(project: string, peers: readonly string[]): void {
  for (const peer of peers) {
    const link = join(project, 'node_modules', peer)
    mkdirSync(dirname(link), { recursive: true })
    if (!existsSync(link)) symlinkSync(resolve('node_modules', peer), link)
  }
}
