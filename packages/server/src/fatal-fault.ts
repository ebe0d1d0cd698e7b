import type { StopTimes } from 'sluicegate-config/config.js'
import { timeSpanText } from 'sluicegate-config/time-span.js'
import type { Log } from './log.js'

/** Beyond its times a stop that hangs is cut off. */
const GRACE_MS = 1_000

/**
 * An exception that nothing caught, or a rejected promise that nothing handled, ends this process or thread with exit code 1: what it has left behind is
 * unknown. Before that `stop` answers what others have asked, for the time of a drain. A second fault meanwhile is logged and changes nothing.
 */
export function drainOnFault(log: Log, times: StopTimes, stop: (times: StopTimes) => Promise<void>): void {
  let isEnding = false
  process.on('uncaughtException', (error: unknown, origin) => {
    if (isEnding) {
      log.error({ err: error, origin }, 'another fault while the service ends')
      return
    }
    isEnding = true
    const drain = timeSpanText(times.drainMs)
    log.error(
      { err: error, origin, drain },
      'a fault of the service: it answers for the time of the drain, finishes requests in flight, and ends',
    )
    const exit = (): never => process.exit(1)
    setTimeout(exit, times.drainMs + times.finishMs + GRACE_MS)
    stop(times).then(exit, exit)
  })
}
