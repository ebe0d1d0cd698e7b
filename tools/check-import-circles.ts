import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import ts from 'typescript'

/** Files to the files that each imports, all from the root. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>

/**
 * Circles of imports in the working tree, the core's AssemblyScript included. Type-only imports count: they are gone at run time, but
 * a reader has to understand all files of such a circle together.
 */
export function checkImportCircles(): string[] {
  const files = trackedFiles(/^(packages|bench|lab|site|deploy|tools|examples)\/.*\.(ts|mts|mjs|js)$/)
  const graph = importGraph(new Map(files.map((file) => [file, readFileSync(file, 'utf8')])))
  return [...circleFaults(graph), ...folderCircleFaults(graph)]
}

/** Tests use what they like: only sources have an order. */
const IS_TEST = /\.test\.ts$|\/testing\//

/**
 * One fault for each group of folders that import each other in a circle: of the folders at the top of each package's sources. Files beside
 * these folders belong to none.
 */
export function folderCircleFaults(graph: ImportGraph): string[] {
  const edges = [...graph].flatMap(([file, targets]) =>
    targets.filter((target) => !IS_TEST.test(file) && folderOf(file) !== folderOf(target)).map((target) => ({ file, target })),
  )
  const folders = new Map<string, string[]>()
  for (const { file, target } of edges) {
    const [from, to] = [folderOf(file), folderOf(target)]
    if (from !== undefined && to !== undefined) folders.set(from, [...(folders.get(from) ?? []), to])
  }
  for (const targets of [...folders.values()]) for (const to of targets) if (!folders.has(to)) folders.set(to, [])
  return circularGroups(folders).map((group) => {
    const within = edges.filter(({ file, target }) => [file, target].every((path) => group.includes(folderOf(path) ?? '')))
    const lines = within.map(({ file, target }) => `  ${file} imports ${target}`)
    return `${group.length} folders import each other in a circle, ${group.join(', ')}; move what the fewest imports need:\n${lines.join('\n')}`
  })
}

/** The folder at the top of a package's sources in which a file stands. */
function folderOf(file: string): string | undefined {
  return file.match(/^(?:.*\/)?(?:src|assembly)\/[^/]+(?=\/)/)?.[0]
}

/** One fault for each group of files that import each other in a circle. */
export function circleFaults(graph: ImportGraph): string[] {
  return circularGroups(graph).map((group) => {
    const lines = group.map((file) => {
      const within = (graph.get(file) ?? []).filter((target) => group.includes(target))
      return `  ${file} imports ${within.join(', ')}`
    })
    return `${group.length} files import each other in a circle; move what they share into a file of its own:\n${lines.join('\n')}`
  })
}

/** The relative imports between files, given by path and source. */
export function importGraph(sources: ReadonlyMap<string, string>): ImportGraph {
  const targetsOf = (file: string, source: string): string[] => {
    const targets = importsOf(file, source).map(({ specifier }) => targetOf(file, specifier, sources))
    return [...new Set(targets.filter((target) => target !== undefined))]
  }
  return new Map([...sources].map(([file, source]) => [file, targetsOf(file, source)]))
}

/** The source file that a relative specifier names; AssemblyScript leaves the extension out. */
function targetOf(file: string, specifier: string, sources: ReadonlyMap<string, string>): string | undefined {
  if (!specifier.startsWith('.')) return undefined
  const path = posix.join(posix.dirname(file), specifier)
  return [path, path.replace(/\.js$/, '.ts'), `${path}.ts`].find((candidate) => sources.has(candidate))
}

/**
 * Groups of two or more files that reach each other, and files that import themselves: the strongly connected components.
 *
 * Source: R. Tarjan, "Depth-first search and linear graph algorithms", 1972.
 */
function circularGroups(graph: ImportGraph): string[][] {
  const order = new Map<string, number>()
  const lowest = new Map<string, number>()
  const path: string[] = []
  const onPath = new Set<string>()
  const groups: string[][] = []
  const lower = (file: string, to: number): void => void lowest.set(file, Math.min(lowest.get(file) ?? to, to))

  const visit = (file: string): void => {
    const index = order.size
    order.set(file, index)
    lower(file, index)
    path.push(file)
    onPath.add(file)
    for (const target of graph.get(file) ?? []) {
      if (!order.has(target)) visit(target)
      if (onPath.has(target)) lower(file, lowest.get(target) ?? index)
    }
    if (lowest.get(file) !== index) return
    const group = path.splice(path.indexOf(file))
    for (const member of group) onPath.delete(member)
    if (group.length > 1 || graph.get(file)?.includes(file)) groups.push(group.sort())
  }

  for (const file of graph.keys()) if (!order.has(file)) visit(file)
  return groups
}

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
