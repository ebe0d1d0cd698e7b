import { type Logger, pino } from 'pino'
import type { LogLevel } from 'sluicegate-config/config.js'

/** The log of the service. Keys, tokens and requests are never in it. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

/** JSON lines on the error output, so that the output stays free for people. Written at once: the last lines before an exit matter most. */
export function createLog(level: LogLevel): Log {
  return pino({ level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime }, pino.destination({ fd: 2, sync: true }))
}
