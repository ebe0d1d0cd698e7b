import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.js'

/** Words that do not come back in names, comments, messages and documents, and what to write instead (docs/glossary.md). */
const RETIRED: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\b(?:nobody|somebody|anybody|whoever)\b/i, 'the thing as subject: "requests over the limit receive 429"'],
  [/\btold\b|\btold[A-Z]\w*|\bTold\w*/, 'the action: recorded, returned, warned, charged'],
  [/\bso many\b/i, 'N, or the name of the number'],
  [/\bas good as new\b/i, 'full'],
  [/\bgatekeeper\b/i, 'middleware'],
  [/\bstands? in line\b/i, 'is in the queue'],
]

/** All sources, tests and examples, the core, the scripts, and documents that people write; tables of benchmarks and proofs are generated. */
const COVERED =
  /^(?!tools\/check-words)(?:(?:packages|bench|chaos|site|deploy|tools|examples)\/(?!.*(?:\.gen\.ts|benchmarks[^/]*\.md|proof[^/]*\.md)$).*\.(?:ts|mts|cts|mjs|js|lua|md|html|yaml)|docs\/(?!.*(?:benchmarks|proof|glossary)[^/]*\.md$).*\.md|[A-Z]+\.md)$/

/** Retired words in the sources and documents of the project. */
export function checkWords(): string[] {
  return trackedFiles(COVERED).flatMap((file) => retiredWords(file, readFileSync(file, 'utf8')))
}

/** One fault for each line with a retired word. */
export function retiredWords(file: string, text: string): string[] {
  const faults: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    for (const [words, instead] of RETIRED) {
      const found = words.exec(line)?.[0]
      if (found !== undefined) faults.push(`${file}:${index + 1}: "${found}" is a retired word; write ${instead}`)
    }
  }
  return faults
}
