import { writeSync } from 'node:fs'
import { ConfigError } from 'sluicegate-config/fault.js'
import { outputFault, readText } from 'sluicegate-config/read-file.js'

/** An error in the command line or its environment, which the user can correct. Shown as one line, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly exitCode: number

  /** @param exitCode 2 for a wrong command line, 1 for a right one that cannot be carried out here. */
  constructor(message: string, exitCode = 2) {
    super(message)
    this.exitCode = exitCode
  }
}

/** What would command a terminal, or hide and turn around what stands beside it. */
const UNPRINTABLE = /[\p{Control}\p{Format}\p{Surrogate}\p{Line_Separator}\p{Paragraph_Separator}]/gu
const BETWEEN_LINES = /[\r\n]+/

/** Text of others, such as keys and answers of a server, on one line of a terminal. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, '?')
}

/** The same with its lines. */
export function printableLines(text: string): string {
  return text.split(BETWEEN_LINES).map(printable).join('\n')
}

/** A value as one line of JSON, in which nothing commands a terminal. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped)
}

function escaped(character: string): string {
  return Array.from({ length: character.length }, (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')
}

/** The text of a file that an option names. @throws {UsageError} */
export function fileText(option: string, file: string, maxBytes: number): string {
  try {
    return readText(file, maxBytes)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new UsageError(`${option}: ${error.message}`, 1)
  }
}

/** Refuses at the start what could not be written at the end. @throws {UsageError} */
export function checkOutput(option: string, path: string | undefined, faultOf = outputFault): void {
  const fault = path === undefined ? undefined : faultOf(path)
  if (fault !== undefined) throw new UsageError(`${option}: ${path} ${fault}`, 1)
}

let failed = (error: NodeJS.ErrnoException): void => {
  if (error.code === 'EPIPE') process.exit()
  say(`sluicegate: the output cannot be written: ${error.message}\n`)
  process.exit(1)
}

/**
 * From now on a command ends quietly when its output is closed, as `sluicegate load --help | head -1` does, and with 1 when it cannot be written,
 * as on a full disk: without this an error would end it with a stack trace. Called once, before a command is chosen.
 */
export function endWithOutput(): void {
  for (const output of [process.stdout, process.stderr]) output.on('error', (error) => outputFailed(error))
}

/** What a command does then that has something to end, or to go on with. */
export function whenOutputFails(act: (isClosed: boolean) => void): void {
  failed = ({ code }) => act(code === 'EPIPE')
}

/** For what writes without a stream. */
export function outputFailed(error: NodeJS.ErrnoException): void {
  failed(error)
}

/** Writes to the error output, if that takes anything. */
export function say(text: string): void {
  try {
    writeSync(2, text)
  } catch {
    // It is full or closed, too.
  }
}
