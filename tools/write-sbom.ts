import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { packed } from './packed.js'

/**
 * What a user gets by installing a package, as npm lists it in CycloneDX.
 *
 * @param tarball the packed package, by its absolute path.
 */
function billOfMaterials(tarball: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-sbom-'))
  try {
    writeFileSync(join(folder, 'package.json'), '{ "name": "installed", "version": "0.0.0", "private": true }')
    npm(folder, 'install', '--ignore-scripts', '--no-audit', '--no-fund', tarball)
    return npm(folder, 'sbom', '--sbom-format=cyclonedx', '--omit=dev')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function npm(cwd: string, ...args: string[]): string {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
}

// `npm run sbom`: packs both packages and writes a bill of materials beside each, in CycloneDX.
for (const name of ['sluicegate', 'sluicegate-server'] as const) {
  const { filename } = await packed(name, 'packed')
  const file = `packed/${filename.replace('.tgz', '.cdx.json')}`
  writeFileSync(file, billOfMaterials(resolve('packed', filename)))
  console.log(file)
}
