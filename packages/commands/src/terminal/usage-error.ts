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
