/** One thing wrong in a configuration file, and where. */
export interface Fault {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  /** Option names joined by dots, for example `policies.uploads.limit`; empty for the file as a whole. */
  readonly path: string
  /** What is wrong and what would be right. */
  readonly reason: string
  /** The file could not be read: that may pass without a change of the configuration. */
  readonly unreadable?: true
}

/** A configuration that cannot be used. Its message has one line a fault, `file:line:column: path: reason`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(faults.map(formatFault).join('\n'))
    this.faults = faults
  }

  /** Whether all may be well at another time, with the same configuration. */
  get mayPass(): boolean {
    return this.faults.some(({ unreadable }) => unreadable)
  }
}

/** An error about a file as a whole, or about a place in it that belongs to no option. */
export function fileError(file: string, reason: string, place = { line: 1, column: 1 }): ConfigError {
  return new ConfigError([{ file, ...place, path: '', reason }])
}

function formatFault({ file, line, column, path, reason }: Fault): string {
  return path === '' ? `${file}:${line}:${column}: ${reason}` : `${file}:${line}:${column}: ${path}: ${reason}`
}

/** A file that cannot be read at the moment. */
export function unreadable(file: string, error: unknown): ConfigError {
  return new ConfigError([{ file, line: 1, column: 1, path: '', reason: `cannot be read: ${(error as Error).message}`, unreadable: true }])
}
