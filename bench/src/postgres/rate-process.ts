import { CONTENDERS, callFor, type OpenContender, PLENTY } from './contenders.js'

/** What a process is to do next: `callers` take one of `keys` keys. */
export interface RateJob {
  readonly callers: number
  readonly keys: number
  readonly ms: number
}

/** What it did. */
export interface RateReport {
  readonly decisions: number
  readonly ms: number
  /** Of 100 decisions 99 took no longer. */
  readonly p99Ms: number
}

// One process of several that share one table: arguments are the number of the contender, and the server. It says its name when it is ready, and
// answers each job with a report.

const [number, url] = process.argv.slice(2) as [string, string]
const contender = await (CONTENDERS[Number(number)] as OpenContender)(url, PLENTY)
await contender.take('warm')
process.send?.(contender.name)
process.on('message', ({ callers, keys, ms }: RateJob) => {
  callFor(contender, callers, () => `user ${Math.floor(Math.random() * keys)}`, ms).then(
    ({ decisions, ms: tookMs, p99Ms }) => process.send?.({ decisions, ms: tookMs, p99Ms } satisfies RateReport),
    (error: unknown) => {
      console.error(error)
      process.exit(1)
    },
  )
})
process.on('disconnect', () => process.exit())
