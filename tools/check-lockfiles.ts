import { readFileSync } from 'node:fs'
import { trackedFiles } from './imports-of.js'
import { type Lockfile, missingPlatforms } from './lockfile-platforms.js'

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
