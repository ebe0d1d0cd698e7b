import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

// What is written of a build, from the root: `node tools/dist/write.js commonjs|bundle|api|packages|sbom|notes`. Each loads what it needs alone.

const WRITERS: Readonly<Record<string, () => Promise<void>>> = {
  /** The CommonJS form of the library, after tsc. */
  async commonjs() {
    const { writeCommonJs } = await import('./commonjs-form.js')
    console.log(await writeCommonJs())
  },

  /** The service as it is published, for `npm start` and for what measures it; tests run what tsc wrote. */
  async bundle() {
    const { bundledProgram } = await import('./bundled-program.js')
    const { FOLDER_OF } = await import('./published.js')
    const folder = FOLDER_OF['sluicegate-server']
    const target = `${folder}/bundle`
    const files = await bundledProgram(folder)
    rmSync(target, { recursive: true, force: true })
    for (const [file, text] of files) {
      mkdirSync(dirname(`${target}/${file}`), { recursive: true })
      writeFileSync(`${target}/${file}`, text)
    }
    console.log(`${target}: ${files.length} files`)
  },

  /** `npm run api`: the public API of the packages as it is now, and the page of all options. */
  async api() {
    const [{ recordPublicApi }, { recordOptions }] = [await import('./check-public-api.js'), await import('./options-page.js')]
    recordPublicApi()
    recordOptions()
  },

  /** Both packages as they are published, in the folder `packed`, after a build. */
  async packages() {
    for (const { filename, size, unpackedSize } of await packedAll())
      console.log(`packed/${filename}: ${Math.ceil(size / 1000)} kB, unpacked ${Math.ceil(unpackedSize / 1000)} kB`)
  },

  /** `npm run sbom`: both packages, and a bill of materials beside each, in CycloneDX. */
  async sbom() {
    for (const { filename } of await packedAll()) {
      const file = `packed/${filename.replace('.tgz', '.cdx.json')}`
      writeFileSync(file, billOfMaterials(resolve('packed', filename)))
      console.log(file)
    }
  },

  /** `npm run notes --silent -- 0.2.0`: the notes of that version, for its release. */
  async notes() {
    const { releaseNotes } = await import('./shared-text.js')
    process.stdout.write(releaseNotes(readFileSync('CHANGELOG.md', 'utf8'), process.argv[3] ?? 'Unreleased'))
  },
}

async function packedAll() {
  const [{ packed }, { FOLDER_OF }] = [await import('./packed.js'), await import('./published.js')]
  const all: Awaited<ReturnType<typeof packed>>[] = []
  for (const name of Object.keys(FOLDER_OF) as (keyof typeof FOLDER_OF)[]) all.push(await packed(name, 'packed'))
  return all
}

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

const [, , what = ''] = process.argv
await (WRITERS[what] ?? (() => Promise.reject(new Error(`there is no "${what}"; there are ${Object.keys(WRITERS).join(', ')}`))))()
