/** What a person typed, or the place where they typed it, has to change. Shown as one line, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  readonly exitCode: number

  /** @param exitCode 2 for a wrong command line, 1 for a right one that cannot be carried out here. */
  constructor(message: string, exitCode = 2) {
    super(message)
    this.exitCode = exitCode
  }
}
