import { printableJson, printableLines, UsageError } from '../terminal/usage-error.js'
import { ServiceClient } from './service-client.js'

/** Of a server that is none of ours, such as a page. */
const MOST_LINES = 5
const LONGEST_LINE = 200

/** Options of `sluicegate health`. */
export interface HealthOptions {
  readonly url: string
  readonly timeoutMs: number
  readonly json: boolean
}

/** Prints what a running service says of itself, and returns 0 while it takes requests, else 1: for health checks without a shell. */
export async function health({ url, timeoutMs, json }: HealthOptions): Promise<number> {
  const { isReady, status, says } = await asked(url, timeoutMs).catch((error) => {
    if (!json || !(error instanceof UsageError)) throw error
    return { isReady: false, status: null, says: [error.message] }
  })
  if (json) console.log(printableJson({ ready: isReady, status, says }))
  else console.log(printableLines(says.join('\n')))
  return isReady ? 0 : 1
}

async function asked(url: string, timeoutMs: number) {
  const { status, body } = await new ServiceClient(url, undefined, timeoutMs).get('/readyz')
  const says = body
    .trimEnd()
    .split('\n')
    .slice(0, MOST_LINES)
    .map((line) => line.slice(0, LONGEST_LINE))
  return { isReady: status === 200, status, says }
}
