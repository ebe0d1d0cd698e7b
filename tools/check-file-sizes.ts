import { readFileSync } from 'node:fs'
import ts from 'typescript'
import { trackedFiles } from './tracked-files.js'

const LONG_LINES = 400
const MOST_MEDIAN_LINES = 120
const MOST_FUNCTION_LINES = 80
/** Suites: each function is a list of tests. */
const IS_SUITE = /\.test\.ts$|^packages\/testkit\/src\/(?:conformance|suites|adapters)\/|^site\/src\/testing\//

/** Sources of which half are too long, and functions that are. Prints a warning for each that is long by itself. Generated sources are not in git, and so not counted. */
export function checkFileSizes(): string[] {
  const files = trackedFiles(/^(packages|tools|bench|chaos|lab|site|deploy|examples)\/.*\.(ts|mts|mjs|js|css|pml|go|lua)$/)
  const texts = files.map((file) => [file, readFileSync(file, 'utf8')] as const)
  const sizes = texts.map(([file, text]) => [file, linesOf(text)] as const)
  for (const warning of fileSizeWarnings(sizes)) console.log(`warning: ${warning}`)
  const functions = texts
    .filter(([file]) => file.endsWith('.ts') && !IS_SUITE.test(file))
    .flatMap(([file, text]) => functionSizeFaults(file, text))
  return [...fileSizeFaults(sizes), ...functions]
}

/** Functions of a source file that a reader cannot see whole. */
export function functionSizeFaults(file: string, text: string): string[] {
  const faults: string[] = []
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const lineAt = (position: number): number => tree.getLineAndCharacterOfPosition(position).line + 1
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && 'body' in node && node.body !== undefined) {
      const first = lineAt(node.getStart())
      const lines = lineAt(node.end) - first + 1
      const name = node.name?.getText() ?? 'a function'
      if (lines > MOST_FUNCTION_LINES)
        faults.push(`${file}:${first}: ${name} has ${lines} lines, over ${MOST_FUNCTION_LINES}: name its steps`)
    }
    ts.forEachChild(node, visit)
  }
  visit(tree)
  return faults
}

/** Files are cut by concept, not by a line count: a long one is a warning, no fault. */
export function fileSizeWarnings(sizes: readonly (readonly [file: string, lines: number])[]): string[] {
  return sizes
    .filter(([, lines]) => lines > LONG_LINES)
    .map(([file, lines]) => `${file} has ${lines} lines, over ${LONG_LINES}: is it one idea? (A warning: the gate passes.)`)
}

/** Half of the files have at most 120 lines. */
export function fileSizeFaults(sizes: readonly (readonly [file: string, lines: number])[]): string[] {
  const median = sizes.map(([, lines]) => lines).sort((a, b) => a - b)[Math.floor(sizes.length / 2)] ?? 0
  return median > MOST_MEDIAN_LINES ? [`The median file has ${median} lines, over ${MOST_MEDIAN_LINES}`] : []
}

function linesOf(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}
