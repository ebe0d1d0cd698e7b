import { type Logger, pino } from 'pino'
import { type LineCounts, LineOutput } from 'sluicegate-commands/terminal/line-output.js'
import type { LogLevel } from 'sluicegate-config/config.js'

/** The log of the service. Keys, tokens and requests are never in it. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

const OPTIONS = { base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime } as const

let output: LineOutput | undefined

/** JSON lines on the error output, so that the output stays free for people. Written at once: the last lines before an exit matter most. */
export function createLog(level: LogLevel): Log {
  return pino({ ...OPTIONS, level }, errorOutput())
}

/** Puts warnings of the process, as those of the library, into its log; Node.js writes them as text between its lines. */
export function logWarnings(log: Log): void {
  const own = process.listeners('warning').find(({ name }) => name === 'onWarning')
  if (own !== undefined) process.off('warning', own)
  process.on('warning', ({ code, name, message }: NodeJS.ErrnoException) => log.warn({ code: code ?? name }, message))
}

/** Of the log of this process. */
export function logCounts(): LineCounts {
  return errorOutput().counts
}

/** One for the process: lines stay in order. */
function errorOutput(): LineOutput {
  if (output !== undefined) return output
  const made = LineOutput.to(2, lostLine)
  output = made
  process.on('exit', () => made.flush())
  return made
}

function lostLine(lost: number): string {
  const lines: string[] = []
  pino(OPTIONS, { write: (line: string) => void lines.push(line) }).warn({ lost }, 'lines of this log are lost: there was no room for them')
  return lines.join('')
}
