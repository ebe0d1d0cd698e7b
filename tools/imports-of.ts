import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import ts from 'typescript'

/** One import, export-from, `import()` or `import('...')` type of a file. */
export interface Import {
  readonly specifier: string
  /** Removed by compilation: nothing of the other module runs. */
  readonly typeOnly: boolean
  readonly line: number
}

/** Everything that the source of one module refers to by name of module. */
export function importsOf(file: string, source: string): Import[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true)
  const found: Import[] = []
  const note = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return
    const { line } = tree.getLineAndCharacterOfPosition(specifier.getStart())
    found.push({ specifier: specifier.text, typeOnly, line: line + 1 })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) note(node.moduleSpecifier, isTypeOnly(node))
    else if (ts.isExportDeclaration(node)) note(node.moduleSpecifier, node.isTypeOnly)
    else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) note(node.arguments[0], false)
    else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) note(node.argument.literal, true)
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return found
}

/** `import type ...`, or braces in which every name says `type`. */
function isTypeOnly({ importClause }: ts.ImportDeclaration): boolean {
  if (importClause === undefined) return false
  if (importClause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true
  const names = importClause.namedBindings
  if (importClause.name !== undefined || names === undefined || !ts.isNamedImports(names)) return false
  return names.elements.length > 0 && names.elements.every((element) => element.isTypeOnly)
}

/** Files that are in git or would be, from the root, whose names `pattern` matches. */
export function trackedFiles(pattern: RegExp): string[] {
  const list = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { encoding: 'utf8' })
  return list.split('\0').filter((file) => pattern.test(file) && existsSync(file))
}
