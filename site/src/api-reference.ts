import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'
import { anchorOf } from './page-addresses.js'

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

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly import: { readonly types: string } }>>
}

/** Modules that have the names of the entry points. */
const ENTRIES = `${SITE}dist/api-entries`

/** Writes the reference of all public entry points, a page each, from the docstrings of their sources, for the generator to read. */
export function writeApiReference(): void {
  const entries = writeEntries()
  const out = `${SITE}reference/api`
  rmSync(out, { recursive: true, force: true })
  const typedoc = pathThere('typedoc/package.json').replace('package.json', 'bin/typedoc')
  const args = [typedoc, '--options', `${SITE}typedoc.json`, '--tsconfig', `${ENTRIES}/tsconfig.json`, '--out', out, ...entries]
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: SITE, encoding: 'utf8' })
  if (status !== 0) throw new Error(`TypeDoc failed\n${stdout}${stderr}`)
  const pages = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
  // TypeDoc numbers the page of an entry point, too, that something else is named like, as `Store` is.
  const numbered = pages.filter((page) => /-\d+\.md$/.test(page) && !pages.includes(unnumbered(page)))
  for (const page of pages) {
    // A name that several pages have is numbered as if they were one: a page has each of its headings once.
    const text = withAnchorsThatAre(readFileSync(`${out}/${page}`, 'utf8')).replace(/(\.md#[a-z]+)-\d+\)/g, '$1)')
    const linked = numbered.reduce((all, name) => all.replaceAll(basename(name), basename(unnumbered(name))), text)
    rmSync(`${out}/${page}`)
    writeFileSync(`${out}/${numbered.includes(page) ? unnumbered(page) : page}`, linked)
  }
}

function unnumbered(page: string): string {
  return page.replace(/-\d+\.md$/, '.md')
}

/** TypeDoc numbers some anchors as if a heading had another's name before it; links to those lead to the heading that is there. */
export function withAnchorsThatAre(markdown: string): string {
  const headings = [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
  const counts = new Map<string, number>()
  const anchors = new Set<string>([...markdown.matchAll(/id="([^"]+)"/g)].map(([, id = '']) => id))
  for (const anchor of headings) {
    const count = counts.get(anchor) ?? 0
    counts.set(anchor, count + 1)
    anchors.add(count === 0 ? anchor : `${anchor}-${count}`)
  }
  return markdown.replace(/\(#([\w-]+)-(\d+)\)/g, (whole, base: string, number: string) =>
    anchors.has(`${base}-${number}`) || !anchors.has(base) ? whole : `(#${base})`,
  )
}

function writeEntries(): string[] {
  rmSync(ENTRIES, { recursive: true, force: true })
  mkdirSync(ENTRIES, { recursive: true })
  const settings = { extends: '../../../packages/sluicegate/tsconfig.json', compilerOptions: { composite: false, rootDir: '../../..' } }
  writeFileSync(`${ENTRIES}/tsconfig.json`, JSON.stringify({ ...settings, include: ['*.ts'], exclude: [] }))
  return entryPoints().map(({ name, types }) => {
    const file = `${ENTRIES}/${name.replace('/', '-')}.ts`
    const source = types.replace('./dist/', '../../../packages/sluicegate/src/').replace(/\.d\.ts$/, '.js')
    writeFileSync(file, `/** @module ${name} */\nexport * from '${source}'\n`)
    return file
  })
}

/** What a program can import: `sluicegate/redis`. */
export function entryNames(): string[] {
  return entryPoints().map(({ name }) => name)
}

function entryPoints(): { readonly name: string; readonly types: string }[] {
  const { exports } = JSON.parse(readFileSync(`${ROOT}packages/sluicegate/package.json`, 'utf8')) as Manifest
  return Object.entries(exports).flatMap(([path, entry]) =>
    typeof entry === 'string' ? [] : [{ name: `sluicegate${path.slice(1)}`, types: entry.import.types }],
  )
}
