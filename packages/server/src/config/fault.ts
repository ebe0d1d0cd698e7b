/** One thing wrong in a configuration file, and where. */
export interface Fault {
  /** From 1. */
  readonly line: number
  /** From 1. */
  readonly column: number
  /** Option names joined by dots, for example `policies.uploads.limit`; empty for the file as a whole. */
  readonly path: string
  /** What is wrong and what would be right. */
  readonly reason: string
}

/** A configuration file that cannot be used. Its message has one line a fault, `file:line:column: path: reason`. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly file: string
  readonly faults: readonly Fault[]

  constructor(file: string, faults: readonly Fault[]) {
    super(faults.map((fault) => formatFault(file, fault)).join('\n'))
    this.file = file
    this.faults = faults
  }
}

function formatFault(file: string, { line, column, path, reason }: Fault): string {
  return path === '' ? `${file}:${line}:${column}: ${reason}` : `${file}:${line}:${column}: ${path}: ${reason}`
}
