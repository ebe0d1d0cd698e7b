import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.js'

const MOST_LINES = 250
const MOST_MEDIAN_LINES = 120

/** Longer ones, each with its reason. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'packages/server/src/dashboard/page/style.css': 'one page, one cascade',
}

/** Files of source that are too long to be read at a glance. Generated ones are not in git, and so not among them. */
export function checkFileSizes(): string[] {
  const files = trackedFiles(/^(packages|tools|bench|chaos|examples)\/.*\.(ts|mts|mjs|js|css|pml|go|lua)$/)
  const sizes = files.map((file) => [file, linesOf(readFileSync(file, 'utf8'))] as const)
  const stale = Object.keys(EXCEPTIONS).filter((file) => !sizes.some(([name, lines]) => name === file && lines > MOST_LINES))
  const faults = stale.map((file) => `${file} needs no exception any more`)
  return [...faults, ...fileSizeFaults(sizes.filter(([file]) => EXCEPTIONS[file] === undefined))]
}

/** The rule itself: no file over 250 lines, and half of them at most 120. */
export function fileSizeFaults(sizes: readonly (readonly [file: string, lines: number])[]): string[] {
  const faults = sizes.filter(([, lines]) => lines > MOST_LINES).map(([file, lines]) => `${file} has ${lines} lines, over ${MOST_LINES}`)
  const median = sizes.map(([, lines]) => lines).sort((a, b) => a - b)[Math.floor(sizes.length / 2)] ?? 0
  if (median > MOST_MEDIAN_LINES) faults.push(`The median file has ${median} lines, over ${MOST_MEDIAN_LINES}`)
  return faults
}

function linesOf(text: string): number {
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0)
}
