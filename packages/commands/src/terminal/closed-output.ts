let end = (): void => process.exit()

/**
 * From now on a command ends quietly when its output is closed, as `sluicegate load --help | head -1` does: without this, an `EPIPE` would
 * end it with a stack trace. Called once, before a command is chosen.
 */
export function endWithOutput(): void {
  for (const output of [process.stdout, process.stderr]) {
    output.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error
      end()
    })
  }
}

/** What a command does then that has something to end, or to go on with. */
export function whenOutputCloses(act: () => void): void {
  end = act
}
