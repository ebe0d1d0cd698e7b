import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.js'

/** Download addresses and missing checksums in lockfiles: they have to install from any registry, and only what was reviewed. */
export function checkLockfiles(): string[] {
  return trackedFiles(/(^|\/)package-lock\.json$/).flatMap((file) => lockfileFaults(file, readFileSync(file, 'utf8')))
}

/** The rule itself, for the text of one lockfile. */
export function lockfileFaults(file: string, text: string): string[] {
  const { packages } = JSON.parse(text) as { packages: Record<string, { resolved?: string; link?: boolean; integrity?: string }> }
  return Object.entries(packages).flatMap(([path, { resolved, link, integrity }]) => {
    if (!/(^|\/)node_modules\//.test(path) || link === true) return []
    const faults = []
    if (resolved !== undefined) faults.push(`${file}: ${path} holds a download address`)
    if (integrity === undefined) faults.push(`${file}: ${path} has no checksum`)
    return faults
  })
}
