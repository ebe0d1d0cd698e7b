import { writeSync } from 'node:fs'

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

function say(text: string): void {
  try {
    writeSync(2, text)
  } catch {
    // It is full or closed, too.
  }
}
