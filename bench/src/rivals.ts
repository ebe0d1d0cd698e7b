import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'

/** The folder with the rivals' own package.json and lockfile. */
export const VERSUS = fileURLToPath(new URL('../versus/', import.meta.url))

const requireThere = createRequire(`${VERSUS}package.json`)

/** A rival's module. Its types are not there when this is compiled, so each caller says what it expects. */
export function requireRival(name: string): unknown {
  try {
    return requireThere(name)
  } catch (error) {
    throw new Error(`no ${name} in bench/versus: npm test and npm run bench install what is used there`, { cause: error })
  }
}

/** The versions of all rivals as their package.json pins them. */
export function rivalVersions(): Readonly<Record<string, string>> {
  return (requireThere('./package.json') as { dependencies: Record<string, string> }).dependencies
}

/** Installs the rivals that are measured. */
export function installRivals(): void {
  installFolder(VERSUS)
}
