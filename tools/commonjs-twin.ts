import { posix } from 'node:path'
import { parseAst } from 'rollup/parseAst'

type Node = ReturnType<typeof parseAst>['body'][number]
type Name = { readonly type: string; readonly name?: string; readonly value?: unknown }

/**
 * An ES module as a CommonJS one: its imports and exports in other words, all else to the letter, so that the second form costs next to
 * nothing in a compressed package. It holds for modules that import each other in no circle and export no binding that they change.
 */
export function commonJsTwin(code: string): string {
  const { body } = parseAst(code)
  const exported: [name: string, value: string][] = []
  let text = ''
  let at = 0
  for (const node of body) {
    const { start, end } = node as unknown as { start: number; end: number }
    const words = wordsOf(node, exported)
    if (words === undefined) continue
    text += code.slice(at, start) + words
    at = end
  }
  text += code.slice(at)
  return `"use strict";${headOf(exported)}${text}${exported.length === 0 ? '' : tailOf(exported)}\n`
}

/** What stands in the place of a statement; undefined: itself. */
function wordsOf(node: Node, exported: [string, string][]): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration': {
      const from = `require(${JSON.stringify(node.source.value)});`
      if (node.specifiers.length === 0) return from
      const names = node.specifiers.map((each) => {
        if (each.type !== 'ImportSpecifier') throw new Error(`${node.source.value} is imported whole, which has no twin`)
        return asked(nameOf(each.imported), each.local.name)
      })
      return `const{${names.join(',')}}=${from}`
    }
    case 'ExportNamedDeclaration': {
      if (node.declaration != null) throw new Error('exports are expected at the end')
      const names = node.specifiers.map((each) => [nameOf(each.exported), nameOf(each.local)] as const)
      if (node.source == null) {
        exported.push(...names.map(([name, local]): [string, string] => [name, local]))
        return ''
      }
      const module = `from_${exported.length}`
      exported.push(...names.map(([name, local]): [string, string] => [name, `${module}.${local}`]))
      return `const ${module}=require(${JSON.stringify(node.source.value)});`
    }
    case 'ExportDefaultDeclaration':
    case 'ExportAllDeclaration':
      throw new Error(`${node.type} has no twin`)
    default:
      return undefined
  }
}

function nameOf({ name, value }: Name): string {
  return name ?? String(value)
}

function asked(name: string, local: string): string {
  return name === local ? name : `${name}:${local}`
}

/** A module with a default beside other names says that it stands for an ES module, as interoperation of TypeScript and Babel expects. */
function headOf(exported: readonly (readonly [string, string])[]): string {
  const isBoth = exported.length > 1 && exported.some(([name]) => name === 'default')
  return isBoth ? 'Object.defineProperty(exports,"__esModule",{value:!0});' : ''
}

/** Each name by itself: Node finds them by reading. A default alone is what `require` returns. */
function tailOf(exported: readonly (readonly [string, string])[]): string {
  const [[first, value] = ['', '']] = exported
  if (exported.length === 1 && first === 'default') return `module.exports=${value};`
  return exported.map(([name, local]) => `exports.${name}=${local};`).join('')
}

/** The files that modules import, with those that these import. */
export function reachableFrom(files: readonly string[], importsOf: (file: string) => readonly string[]): Set<string> {
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) throw new Error(`${[...path, file].join(' -> ')}: a circle has no twin`)
    if (done.has(file)) return
    for (const each of importsOf(file)) visit(posix.normalize(each), [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  return done
}
