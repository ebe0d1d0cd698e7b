import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'

/** The folder with the generator's own package.json and lockfile, its settings and the pages that only the site has. */
export const SITE = fileURLToPath(new URL('../', import.meta.url))
export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** Where the built site stands. */
export const BUILT = `${ROOT}.cache/site`

const requireThere = createRequire(`${SITE}package.json`)

/** Where a file of the generator's packages is. */
export function pathThere(name: string): string {
  return requireThere.resolve(name)
}

/** Installs what builds the site. */
export function installGenerator(): void {
  installFolder(SITE)
}
