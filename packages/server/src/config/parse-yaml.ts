import { LineCounter, parseDocument } from 'yaml'
import { ConfigError, type Fault } from './fault.js'
import { Section } from './section.js'

/** Far above any real file; a larger one is a mistake in the path. */
const MAX_FILE_CHARACTERS = 1_000_000

/** Messages of the parser that address programmers, in words for the author of a file. */
const REASON_BY_CODE: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'begins a second document: a file has one, so take out the line "---" or what follows it',
}

/**
 * What `read` makes of the mapping in `text`, YAML 1.2; `file` is its name in messages.
 *
 * @throws {ConfigError} with every fault that the parser or `read` found, each with its line and column.
 */
export function parseYaml<Result>(text: string, file: string, read: (root: Section) => Result): Result {
  if (text.length > MAX_FILE_CHARACTERS) {
    const reason = `is larger than ${MAX_FILE_CHARACTERS} characters: is it the right file?`
    throw new ConfigError(file, [{ line: 1, column: 1, path: '', reason }])
  }
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' })
  const faults: Fault[] = document.errors.map((error) => {
    const { line, col } = lines.linePos(error.pos[0])
    return { line: Math.max(1, line), column: Math.max(1, col), path: '', reason: REASON_BY_CODE[error.code] ?? error.message }
  })
  // After a syntax error the rest of the file would cause faults that are no faults.
  if (faults.length > 0) throw new ConfigError(file, faults)
  const result = read(new Section({ document, lines, faults }, document.contents))
  if (faults.length > 0)
    throw new ConfigError(
      file,
      [...faults].sort((a, b) => a.line - b.line || a.column - b.column),
    )
  return result
}
