import { posix } from 'node:path'
import { parseAst } from 'rollup/parseAst'
import ts from 'typescript'

type Node = ReturnType<typeof parseAst>['body'][number]
type Name = { readonly type: string; readonly name?: string; readonly value?: unknown }

/** A name that a module exports, and what it is within. */
type Exported = readonly [name: string, value: string]

/** Whether a module exports under this name a binding that it changes. */
type IsLive = (module: string, name: string) => boolean

/**
 * An ES module as a CommonJS one: its imports and exports in other words, all else to the letter, so that the second form costs next to
 * nothing in a compressed package. It holds for modules that import each other in no circle.
 */
export function commonJsTwin(code: string, isLive: IsLive = () => false): string {
  const { body } = parseAst(code)
  const exported: Exported[] = []
  const edits: Edit[] = []
  const bindings = once(() => new Bindings(code))
  for (const node of body) {
    const { start, end } = node as unknown as { start: number; end: number }
    const words = wordsOf(node, exported, (module, name, local) => {
      if (!isLive(module, name)) return undefined
      const holder = `live_${start}`
      edits.push(...bindings().readsInstead(local, `${holder}.${name}`))
      return holder
    })
    if (words !== undefined) edits.push([start, end, words])
  }
  for (const [name, local] of changing(body, exported)) edits.push(...bindings().writesAlso(local, `exports.${name}`))
  return `"use strict"; ${headOf(exported)}${edited(code, edits)}${exported.length === 0 ? '' : tailOf(exported)}\n`
}

/** Names under which a module exports bindings that it may change. */
export function liveNamesOf(code: string): ReadonlySet<string> {
  const { body } = parseAst(code)
  const exported = body.flatMap((node) =>
    node.type === 'ExportNamedDeclaration' && node.source == null
      ? node.specifiers.map((each): Exported => [nameOf(each.exported), nameOf(each.local)])
      : [],
  )
  return new Set(changing(body, exported).map(([name]) => name))
}

/** What stands in the place of a statement; undefined: itself. */
function wordsOf(
  node: Node,
  exported: Exported[],
  holderOf: (module: string, name: string, local: string) => string | undefined,
): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration': {
      const module = String(node.source.value)
      const from = `require(${JSON.stringify(module)});`
      if (node.specifiers.length === 0) return from
      let held: string | undefined
      const names = node.specifiers.flatMap((each) => {
        if (each.type !== 'ImportSpecifier') throw new Error(`${module} is imported whole, which has no twin`)
        const holder = holderOf(module, nameOf(each.imported), each.local.name)
        held ??= holder
        return holder === undefined ? asked(nameOf(each.imported), each.local.name) : []
      })
      const rest = names.length === 0 ? '' : `const { ${names.join(', ')} } = ${from}`
      return held === undefined ? rest : `const ${held} = ${from}${rest}`
    }
    case 'ExportNamedDeclaration': {
      if (node.declaration != null) throw new Error('exports are expected at the end')
      const names = node.specifiers.map((each) => [nameOf(each.exported), nameOf(each.local)] as const)
      if (node.source == null) {
        exported.push(...names)
        return ''
      }
      const source = String(node.source.value)
      if (names.some(([name, local]) => holderOf(source, local, name) !== undefined)) throw new Error(`${source} changes what is passed on`)
      const module = `from_${exported.length}`
      exported.push(...names.map(([name, local]): Exported => [name, `${module}.${local}`]))
      return `const ${module} = require(${JSON.stringify(source)});`
    }
    case 'ExportDefaultDeclaration':
    case 'ExportAllDeclaration':
      throw new Error(`${node.type} has no twin`)
    default:
      return undefined
  }
}

function edited(code: string, edits: readonly Edit[]): string {
  let text = ''
  let at = 0
  for (const [start, end, words] of [...edits].sort((a, b) => a[0] - b[0])) {
    text += code.slice(at, start) + words
    at = end
  }
  return text + code.slice(at)
}

/** Exports that are neither constants nor functions nor classes. */
function changing(body: readonly Node[], exported: readonly Exported[]): Exported[] {
  const variables = body.flatMap((node) => (node.type === 'VariableDeclaration' && node.kind !== 'const' ? node.declarations : []))
  const names = new Set(variables.map(({ id }) => (id.type === 'Identifier' ? id.name : '')))
  return exported.filter(([, local]) => names.has(local))
}

function once<Value>(make: () => Value): () => Value {
  let value: Value | undefined
  return () => {
    value ??= make()
    return value
  }
}

function nameOf({ name, value }: Name): string {
  return name ?? String(value)
}

function asked(name: string, local: string): string {
  return name === local ? name : `${name}: ${local}`
}

/** A module with a default beside other names says that it stands for an ES module, as interoperation of TypeScript and Babel expects. */
function headOf(exported: readonly Exported[]): string {
  const isBoth = exported.length > 1 && exported.some(([name]) => name === 'default')
  return isBoth ? 'Object.defineProperty(exports, "__esModule", { value: true }); ' : ''
}

/** Each name by itself: Node finds them by reading. A default alone is what `require` returns. */
function tailOf(exported: readonly Exported[]): string {
  const [[first, value] = ['', '']] = exported
  if (exported.length === 1 && first === 'default') return `module.exports = ${value};`
  return exported.map(([name, local]) => `exports.${name} = ${local};`).join('\n')
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

/** A piece of a text, and what stands in its place. */
type Edit = readonly [start: number, end: number, words: string]

const FILE = 'module.js'

/** The names of a module, resolved: where each binding of its top level is read and written. */
class Bindings {
  readonly #file: ts.SourceFile
  readonly #checker: ts.TypeChecker

  constructor(code: string) {
    const file = ts.createSourceFile(FILE, code, ts.ScriptTarget.ESNext, true, ts.ScriptKind.JS)
    const options = { allowJs: true, noLib: true, noResolve: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext, types: [] }
    const host = { ...ts.createCompilerHost(options), getSourceFile: (name: string) => (name === FILE ? file : undefined) }
    this.#file = file
    this.#checker = ts.createProgram([FILE], options, host).getTypeChecker()
  }

  /** Each place that reads an imported name reads `words` instead. */
  readsInstead(local: string, words: string): Edit[] {
    return this.#uses(local)
      .filter((use) => !ts.isImportSpecifier(use.parent))
      .map((use) => [use.getStart(), use.getEnd(), ts.isShorthandPropertyAssignment(use.parent) ? `${local}:${words}` : words])
  }

  /**
   * Each assignment of an exported name sets `words`, too.
   *
   * @throws when it changes in another way than by `=`.
   */
  writesAlso(local: string, words: string): Edit[] {
    return this.#uses(local).flatMap((use): Edit[] => {
      const { parent } = use
      if (ts.isPrefixUnaryExpression(parent) || ts.isPostfixUnaryExpression(parent))
        throw new Error(`${local} is exported, and changes otherwise than by =`)
      if (!ts.isBinaryExpression(parent) || parent.left !== use || !isAssignment(parent.operatorToken.kind)) return []
      if (parent.operatorToken.kind !== ts.SyntaxKind.EqualsToken) throw new Error(`${local} is exported, and changes otherwise than by =`)
      const start = parent.getStart()
      return [[start, start, `${words}=`]]
    })
  }

  #uses(local: string): ts.Identifier[] {
    const symbol = this.#checker.getSymbolsInScope(this.#file, ts.SymbolFlags.All).find(({ name }) => name === local)
    const found: ts.Identifier[] = []
    const visit = (node: ts.Node): void => {
      if (ts.isIdentifier(node) && node.text === local && this.#symbolOf(node) === symbol) found.push(node)
      ts.forEachChild(node, visit)
    }
    visit(this.#file)
    return found
  }

  #symbolOf(node: ts.Identifier): ts.Symbol | undefined {
    return ts.isShorthandPropertyAssignment(node.parent)
      ? this.#checker.getShorthandAssignmentValueSymbol(node.parent)
      : this.#checker.getSymbolAtLocation(node)
  }
}

function isAssignment(kind: ts.SyntaxKind): boolean {
  return kind >= ts.SyntaxKind.FirstAssignment && kind <= ts.SyntaxKind.LastAssignment
}
