import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * What a user gets by installing these packages, as npm lists it in CycloneDX.
 *
 * @param tarballs packed packages, by their absolute paths; the last is the one that is described, the others are packages of ours that it needs.
 */
export function billOfMaterials(tarballs: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-sbom-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "name": "installed", "version": "0.0.0", "private": true }')
    const npm = (...args: string[]): string =>
      execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
    npm('install', '--ignore-scripts', '--no-audit', '--no-fund', ...tarballs)
    return npm('sbom', '--sbom-format=cyclonedx', '--omit=dev')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
