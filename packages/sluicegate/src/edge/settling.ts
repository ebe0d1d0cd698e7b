import { warnProcess } from './process-warning.js'

/** What an outcome has to be told when the response has ended: its status, or undefined when the client had gone before. */
export type Settle = (status: number | undefined) => void

/** Tells it where no caller is left to hear of a fault: what `counts` throws is a warning, and not the end of the process. */
export function settleQuietly(settle: Settle, status: number | undefined): void {
  try {
    settle(status)
  } catch (error) {
    if (error instanceof Error) warnProcess(error)
    else console.warn(error)
  }
}
