import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.js'

const LONG_LINES = 400
const MOST_MEDIAN_LINES = 120

/** Sources of which half are too long. Prints a warning for each that is long by itself. Generated sources are not in git, and so not counted. */
export function checkFileSizes(): string[] {
  const files = trackedFiles(/^(packages|tools|bench|chaos|lab|site|examples)\/.*\.(ts|mts|mjs|js|css|pml|go|lua)$/)
  const sizes = files.map((file) => [file, linesOf(readFileSync(file, 'utf8'))] as const)
  for (const warning of fileSizeWarnings(sizes)) console.log(`warning: ${warning}`)
  return fileSizeFaults(sizes)
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
