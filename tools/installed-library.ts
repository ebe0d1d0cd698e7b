import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { packed } from './packed.js'
import type { Published } from './published.js'

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
