import { existsSync, readFileSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import ts from 'typescript'

// The public API of a package as text, from the declarations that it ships: what each entry point exports, each declaration once.
// Comments, private members, the order of declarations and the files they stand in are no part of it.

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, string | { readonly import: { readonly types: string }; readonly require?: unknown }>>
  readonly bin?: Readonly<Record<string, string>>
}

const printer = ts.createPrinter({ removeComments: true })

/** The public API of the built package in `folder`: its programs, then its entry points in the order of package.json. */
export function publicApi(folder: string): string {
  const { name, exports = {}, bin = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as Manifest
  const programs = Object.keys(bin).map((program) => `program ${program}\n`)
  const entries = Object.entries(exports).flatMap(([path, conditions]) => {
    if (typeof conditions === 'string') return []
    const forms = conditions.require === undefined ? 'import' : 'import, require'
    return [{ title: `${name}${path.slice(1)} (${forms})`, file: resolve(folder, conditions.import.types) }]
  })
  const missing = entries.filter(({ file }) => !existsSync(file))
  if (missing.length > 0) throw new Error(`${missing.map(({ file }) => file).join(', ')}: not built`)
  return [...programs, ...declaredIn(folder, entries)].join('\n')
}

/** One section per entry point. A declaration is written at its first use. */
function declaredIn(folder: string, entries: readonly { readonly title: string; readonly file: string }[]): string[] {
  const program = ts.createProgram(
    entries.map(({ file }) => file),
    { module: ts.ModuleKind.NodeNext, target: ts.ScriptTarget.ES2022, noEmit: true, noLib: true, types: [] },
  )
  const checker = program.getTypeChecker()
  const dist = resolve(folder, 'dist') + sep
  const writtenIn = new Map<ts.Symbol, string>()
  return entries.map(({ title, file }) => {
    const source = program.getSourceFile(file)
    const module = source && checker.getSymbolAtLocation(source)
    if (module === undefined) throw new Error(`${relative(process.cwd(), file)} exports nothing`)
    const exported = checker
      .getExportsOfModule(module)
      .map((symbol) => ({ name: symbol.name, symbol: original(checker, symbol) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    const known = new Set(exported.map(({ symbol }) => symbol))
    const lines = exported.map(({ name, symbol }) => {
      const before = writtenIn.get(symbol)
      if (before !== undefined) return `${name}: as in ${before}`
      writtenIn.set(symbol, title)
      const renamed = name === symbol.name ? '' : `${name}: `
      return renamed + textOf(symbol)
    })
    // Types that an export names and that cannot be imported by their own names: a change of them is a change of the export.
    const unnamed: string[] = []
    const queue = [...known]
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      for (const symbol of namedBy(checker, next)) {
        const isOwn = symbol.declarations?.some((declaration) => declaration.getSourceFile().fileName.startsWith(dist))
        if (!isOwn || writtenIn.has(symbol)) continue
        writtenIn.set(symbol, title)
        unnamed.push(textOf(symbol))
        queue.push(symbol)
      }
    }
    const hidden = unnamed.length === 0 ? [] : ['', '-- named by these exports, not exported --', ...unnamed.sort()]
    return [`== ${title} ==`, ...lines, ...hidden, ''].join('\n')
  })
}

function original(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol {
  return symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

/** What the declarations of a symbol name, in their order. */
function namedBy(checker: ts.TypeChecker, symbol: ts.Symbol): ts.Symbol[] {
  const found = new Set<ts.Symbol>()
  const look = (node: ts.Node): void => {
    if (isPrivate(node)) return
    const name = nameOfReference(node)
    const named = name && checker.getSymbolAtLocation(name)
    if (named) {
      const target = original(checker, named)
      if (!(target.flags & ts.SymbolFlags.TypeParameter)) found.add(target)
    }
    ts.forEachChild(node, look)
  }
  for (const declaration of symbol.declarations ?? []) look(declaration)
  return [...found]
}

function nameOfReference(node: ts.Node): ts.Node | undefined {
  if (ts.isTypeReferenceNode(node)) return node.typeName
  if (ts.isExpressionWithTypeArguments(node)) return node.expression
  if (ts.isTypeQueryNode(node)) return node.exprName
  return ts.isImportTypeNode(node) ? node.qualifier : undefined
}

function textOf(symbol: ts.Symbol): string {
  return (symbol.declarations ?? []).map(declarationText).join('\n')
}

function declarationText(declaration: ts.Declaration): string {
  const isInList = ts.isVariableDeclaration(declaration) && ts.isVariableStatement(declaration.parent.parent)
  const node: ts.Node = isInList ? declaration.parent.parent : declaration
  const { transformed, dispose } = ts.transform(node, [withoutPrivate])
  const text = printer.printNode(ts.EmitHint.Unspecified, transformed[0] as ts.Node, node.getSourceFile())
  dispose()
  // Inferred types are declared by the file that they stand in.
  return text.replace(/^(export )?(default )?(declare )?/, '').replace(/\bimport\("\.[^"]*"\)\./g, '')
}

const withoutPrivate: ts.TransformerFactory<ts.Node> = (context) => (root) => {
  const visit = (node: ts.Node): ts.Node | undefined => (isPrivate(node) ? undefined : ts.visitEachChild(node, visit, context))
  return ts.visitEachChild(root, visit, context)
}

/** A private constructor is part of the API: without it callers could construct the class. */
function isPrivate(node: ts.Node): boolean {
  if (!ts.isClassElement(node) || ts.isConstructorDeclaration(node)) return false
  if (node.name !== undefined && ts.isPrivateIdentifier(node.name)) return true
  return ts.canHaveModifiers(node) && (ts.getModifiers(node) ?? []).some(({ kind }) => kind === ts.SyntaxKind.PrivateKeyword)
}
