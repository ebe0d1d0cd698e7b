import { readFileSync } from 'node:fs'
import { trackedFiles } from './tracked-files.js'

type Retired = readonly (readonly [words: RegExp, instead: string])[]

/** Words that do not come back in names, comments, messages and documents, and what to write instead (docs/glossary.md). */
const RETIRED: Retired = [
  [/\b(?:nobody|somebody|anybody|whoever)\b/i, 'the thing as subject: "requests over the limit receive 429"'],
  [/\btold\b|\btold[A-Z]\w*|\bTold\w*/, 'the action: recorded, returned, warned, charged'],
  [/\bso many\b/i, 'N, or the name of the number'],
  [/\bas good as new\b/i, 'full'],
  [/\bgatekeeper\b/i, 'middleware'],
  [/\bstands? in line\b/i, 'is in the queue'],
]

/** Words that do not come back in documents and comments; names and texts of programs may have them, as the option `newcomers` does. */
const RETIRED_IN_PROSE: Retired = [
  [/\bnewcomers?\b/i, 'new key, new caller'],
  [/\banew\b|\bafresh\b/i, 'again, or what the thing is then: full'],
]

/** Words that do not come back in documents. */
const RETIRED_IN_DOCUMENTS: Retired = [
  [/\bof (?:its|their) own\b/i, '"its own table" for "a table of its own", or "separate"'],
  [/\bask(?:s|ed|ing)?\b/i, 'request, call, query; or the option'],
  [/(?<!\b(?:users?|callers?|clients|persons?|one|people|anyone|authors?),? )\bwho\b(?! (?:decides|may call))/i, 'that, for a thing'],
]

/** All sources, tests and examples, the core, the scripts, and documents that people write; tables of benchmarks and proofs are generated. */
const COVERED =
  /^(?!tools\/check-words)(?:(?:packages|bench|chaos|site|deploy|tools|examples)\/(?!.*(?:\.gen\.ts|benchmarks[^/]*\.md|proof[^/]*\.md)$).*\.(?:ts|mts|cts|mjs|js|lua|md|html|yaml)|docs\/(?!.*(?:benchmarks|proof|glossary|options)[^/]*\.md$).*\.md|[A-Z]+\.md)$/

/** Retired words in the sources and documents of the project. */
export function checkWords(): string[] {
  return trackedFiles(COVERED).flatMap((file) => retiredWords(file, readFileSync(file, 'utf8')))
}

/** One fault for each line with a retired word. */
export function retiredWords(file: string, text: string): string[] {
  const faults: string[] = []
  const isDocument = file.endsWith('.md')
  let isCode = false
  for (const [index, line] of text.split('\n').entries()) {
    if (isDocument && /^\s*```/.test(line)) isCode = !isCode
    const prose = isCode ? '' : proseOf(line, isDocument)
    const found = [
      ...retiredIn(line, RETIRED),
      ...retiredIn(prose, RETIRED_IN_PROSE),
      ...(isDocument ? retiredIn(prose, RETIRED_IN_DOCUMENTS) : []),
    ]
    for (const { word, instead } of found) faults.push(`${file}:${index + 1}: "${word}" is a retired word; write ${instead}`)
  }
  return faults
}

function retiredIn(text: string, retired: Retired): { readonly word: string; readonly instead: string }[] {
  return retired.flatMap(([words, instead]) => {
    const word = words.exec(text)?.[0]
    return word === undefined ? [] : [{ word, instead }]
  })
}

/** The line, or its comment, without code and addresses. */
function proseOf(line: string, isDocument: boolean): string {
  const [comment = ''] = isDocument ? [line] : (/^\s*(?:\/\/|\/?\*).*|(?<=\s)\/\/ .*|(?<=^|\s)-- .*/.exec(line) ?? [])
  return /^\s*\* @example/.test(comment) ? '' : comment.replace(/`[^`]*`|\]\([^)]*\)/g, '')
}
