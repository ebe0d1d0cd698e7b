import { readFileSync } from 'node:fs'
import { LineCounter, parseDocument } from 'yaml'
import { readClients, readStop } from './clients.js'
import { type Config, DEFAULT_DASHBOARD, DEFAULT_LISTEN, KEY_DISPLAYS } from './config.js'
import { ConfigError, type Fault } from './fault.js'
import { readPolicies } from './policies.js'
import { Section, type Source } from './section.js'

/** Far above any real file; a larger one is a mistake in the path. */
const MAX_FILE_CHARACTERS = 1_000_000

/** Messages of the parser that address programmers, in words for the author of a file. */
const REASON_BY_CODE: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'begins a second document: a file has one, so take out the line "---" or what follows it',
}

/**
 * The configuration in `file`.
 *
 * @throws {ConfigError} with every fault that was found, each with its line and column.
 */
export function readConfig(file: string): Config {
  return parseConfig(readText(file), file)
}

/**
 * The configuration in `text`, YAML 1.2; `file` is its name in messages.
 *
 * @throws {ConfigError} with every fault that was found, each with its line and column.
 */
export function parseConfig(text: string, file = 'config'): Config {
  if (text.length > MAX_FILE_CHARACTERS) throw whole(file, `is larger than ${MAX_FILE_CHARACTERS} characters: is it the right file?`)
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: '1.2' })
  const faults: Fault[] = document.errors.map((error) => {
    const { line, col } = lines.linePos(error.pos[0])
    return { line: Math.max(1, line), column: Math.max(1, col), path: '', reason: REASON_BY_CODE[error.code] ?? error.message }
  })
  // After a syntax error the rest of the file would cause faults that are no faults.
  if (faults.length > 0) throw new ConfigError(file, faults)

  const config = readDocument({ document, lines, faults })
  if (faults.length > 0) throw new ConfigError(file, inOrder(faults))
  return config
}

function readDocument(source: Source): Config {
  const root = new Section(source, source.document.contents)
  const listen = root.section('listen')
  const dashboard = root.section('dashboard')
  const config = {
    listen: {
      host: listen.text('host', '127.0.0.1') ?? DEFAULT_LISTEN.host,
      port: listen.integer('port', 0, 65_535) ?? DEFAULT_LISTEN.port,
    },
    clients: readClients(root.section('clients')),
    stop: readStop(root.section('stop')),
    policies: readPolicies(root),
    dashboard: { keys: dashboard.oneOf('keys', KEY_DISPLAYS) ?? DEFAULT_DASHBOARD.keys },
  }
  for (const section of [listen, dashboard, root]) section.done()
  return config
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw whole(file, `cannot be read: ${(error as Error).message}`)
  }
}

function whole(file: string, reason: string): ConfigError {
  return new ConfigError(file, [{ line: 1, column: 1, path: '', reason }])
}

function inOrder(faults: readonly Fault[]): Fault[] {
  return [...faults].sort((a, b) => a.line - b.line || a.column - b.column)
}
