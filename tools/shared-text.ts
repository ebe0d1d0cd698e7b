import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import { parseAst } from 'rollup/parseAst'
import { FORM } from './commonjs-form.js'

/** Generated modules that hold nothing but constants, by the chunk that has them once for both module forms. */
export const SHARED_TEXTS: Readonly<Record<string, RegExp>> = {
  'core-text': /\/core-wasm(-\d+)?\.gen\.js$/,
  'scripts-text': /\/scripts\.gen\.js$/,
}

/** Of a published package, in its CommonJS form; bundlers are to keep their imports, which import no name. */
export const SHARED_FILES = Object.keys(SHARED_TEXTS).map((name) => `./${FORM}/shared/${name}.js`)

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
      return `${named(each.imported)}:${each.local.name}`
    })
    const path = posix.relative(from, `${FORM}/${found.file}`)
    const relative = path.startsWith('.') ? path : `./${path}`
    text += `${module.slice(at, start)}import${JSON.stringify(relative)};const{${names.join(',')}}=${found.place};`
    at = end
  }
  return text + module.slice(at)
}

function named({ name, value }: { readonly type: string; readonly name?: string; readonly value?: unknown }): string {
  return name ?? String(value)
}
