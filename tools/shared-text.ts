import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { parseAst } from 'rollup/parseAst'
import { FORM } from './commonjs-form.js'

/** Generated modules that hold nothing but constants, by the chunk that has them once for both module forms. */
export const SHARED_TEXTS: Readonly<Record<string, RegExp>> = {
  'core-text': /\/core-wasm(-\d+)?\.gen\.js$/,
  'scripts-text': /\/scripts\.gen\.js$/,
}

/** Where ES modules find the embedded core: Cloudflare's runtime compiles none from bytes and has the imported `core.wasm`, so that its bundles go without. */
const CORE_IMPORT = '#core-text'
const CORE_FILE = `./${FORM}/shared/core-text.js`
const NO_CORE = './dist/shared/no-core.js'

/** `imports` of the published package.json. */
export const PACKED_IMPORTS = { [CORE_IMPORT]: { workerd: NO_CORE, default: CORE_FILE } }

/** Files of the published package that are imported for what they do; bundlers are to keep these imports, which import no name. */
export const SIDE_EFFECTS = [...Object.keys(SHARED_TEXTS).map((name) => `./${FORM}/shared/${name}.js`), NO_CORE]

/** What stands in the place of the core where there is none. */
export function withoutCore(shared: readonly SharedText[]): readonly [file: string, script: string] {
  const core = shared.find(({ file }) => isCore(file))
  if (core === undefined) throw new Error('no chunk is the core')
  return [NO_CORE, `${core.place}??={};\n`]
}

function isCore(file: string): boolean {
  return `./${FORM}/${file}` === CORE_FILE
}

/** A chunk that both forms read. */
export interface SharedText {
  /** Within either form. */
  readonly file: string
  /** A script that is the same as an ES module and as a CommonJS one, since it neither imports nor exports. */
  readonly script: string
  /** Where in the process its constants are then. */
  readonly place: string
}

/** @throws when the module imports another one. */
export function sharedText(file: string, module: string): SharedText {
  const names: string[] = []
  let text = ''
  let at = 0
  for (const node of parseAst(module).body) {
    if (node.type === 'ImportDeclaration') throw new Error(`${file} imports ${node.source.value}: it cannot be shared`)
    if (node.type !== 'ExportNamedDeclaration') continue
    const { start, end } = node as unknown as { start: number; end: number }
    names.push(...node.specifiers.map(({ exported, local }) => `${named(exported)}:${named(local)}`))
    text += module.slice(at, start)
    at = end
  }
  text += module.slice(at)
  // Two versions in one process have two.
  const place = `globalThis[Symbol.for("sluicegate ${createHash('sha256').update(text).digest('hex').slice(0, 16)}")]`
  return { file, place, script: `(()=>{${text};${place}={${names.join(',')}}})();\n` }
}

/** A module of a form with the constants from where they are once. */
export function readingShared(file: string, module: string, folder: string, shared: readonly SharedText[]): string {
  const from = posix.join(folder, posix.dirname(file))
  let text = ''
  let at = 0
  for (const node of parseAst(module).body) {
    if (node.type !== 'ImportDeclaration') continue
    const imported = posix.join(posix.dirname(file), String(node.source.value))
    const found = shared.find((each) => each.file === imported)
    if (found === undefined) continue
    const { start, end } = node as unknown as { start: number; end: number }
    const names = node.specifiers.map((each) => {
      if (each.type !== 'ImportSpecifier') throw new Error(`${file} imports ${imported} whole`)
      return `${named(each.imported)}: ${each.local.name}`
    })
    const path = posix.relative(from, `${FORM}/${found.file}`)
    const relative = isCore(found.file) && folder !== FORM ? CORE_IMPORT : path.startsWith('.') ? path : `./${path}`
    text += `${module.slice(at, start)}import ${JSON.stringify(relative)};const { ${names.join(', ')} } = ${found.place};`
    at = end
  }
  return text + module.slice(at)
}

function named({ name, value }: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return name ?? String(value)
}

/**
 * The section of a version in a changelog, as the text of its release.
 *
 * @throws when there is none, or it is empty.
 */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((each) => each.startsWith(`[${version}]`))
  if (section === undefined) throw new Error(`CHANGELOG.md has no section "## [${version}]": rename Unreleased to it, with the date`)
  const notes = section.replace(/^.*\n/, '').trim()
  if (notes === '') throw new Error(`CHANGELOG.md says nothing below "## [${version}]"`)
  return `${notes}\n`
}
