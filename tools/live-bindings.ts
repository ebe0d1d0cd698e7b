import ts from 'typescript'

/** A piece of a text, and what stands in its place. */
export type Edit = readonly [start: number, end: number, words: string]

const FILE = 'module.js'

/** The names of a module, resolved: where each binding of its top level is read and written. */
export class Bindings {
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
