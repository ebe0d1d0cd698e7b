import { ConfigError } from 'sluicegate-config/fault.js'
import { outputFault, readText } from 'sluicegate-config/read-file.js'
import { UsageError } from './usage-error.js'

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
