import { type Document, isScalar, LineCounter, parseDocument, visit, type YAMLMap } from 'yaml'
import type { Fault } from './fault.js'
import type { Source } from './section.js'

/** Messages of the parser that address programmers, in words for the author of a file. */
const REASON_BY_CODE: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'begins a second document: a file has one, so take out the line "---" or what follows it',
  RESOURCE_EXHAUSTION: 'is nested too deeply',
}

/** The document in `text`, YAML 1.2. Adds its syntax errors to `faults`, each with its line and column. */
export function parseYaml(file: string, text: string, faults: Fault[]): Source {
  const lines = linesOf(text)
  // The parser's own test of keys compares each with all before it.
  const document = parseDocument(text, { prettyErrors: false, version: '1.2', uniqueKeys: false })
  const add = (offset: number, reason: string): void => {
    const { line, col } = lines.linePos(offset)
    faults.push({ file, line: Math.max(1, line), column: Math.max(1, col), path: '', reason })
  }
  // Where the parser gives up, it finds faults that are none.
  const tooDeep = document.errors.filter(({ code }) => code === 'RESOURCE_EXHAUSTION').slice(0, 1)
  const found = tooDeep.length > 0 ? tooDeep : document.errors
  // One that lies in a map within a map is found for each of them.
  const each = new Map(found.map((error) => [`${error.pos[0]} ${error.message}`, error]))
  for (const { code, message, pos } of each.values()) add(pos[0], REASON_BY_CODE[code] ?? message)
  for (const offset of repeatedKeys(document)) add(offset, 'keys must be unique: this one stands before in the same map')
  return { file, document, lines, faults }
}

/** Where each line begins. The parser's own count leaves out some lines of texts with faults. */
function linesOf(text: string): LineCounter {
  const lines = new LineCounter()
  lines.addNewLine(0)
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines.addNewLine(at + 1)
  return lines
}

/** The offsets of keys that stand before in the same map. */
function repeatedKeys(document: Document): number[] {
  const offsets: number[] = []
  const check = (_: unknown, { items }: YAMLMap): void => {
    const seen = new Set<unknown>()
    for (const { key } of items) {
      if (!isScalar(key)) continue
      if (seen.has(key.value)) offsets.push(key.range?.[0] ?? 0)
      seen.add(key.value)
    }
  }
  visit(document, { Map: check })
  return offsets
}
