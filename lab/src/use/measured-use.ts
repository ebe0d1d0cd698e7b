import { type ChildProcess, fork } from 'node:child_process'
import { serveLimiter } from 'sluicegate/cluster'
import { RedisProcess } from 'sluicegate-testkit/servers/redis-process.js'
import { MODES, namedPolicy, type UseCell } from './use-cell.js'
import { p99 } from './use-figures.js'
import type { UseReport, UseTask } from './use-node.js'

const [NODES, REQUESTS_PER_LEASE, DEMANDS] = [
  [2, 4, 16],
  [1, 2, 5, 20],
  [0.9, 2],
]

const MOST_RUNS = 2
const CALM_MS = 50

/** Who keeps the budgets of a measured run. */
export type Keeper = 'redis' | 'cluster'

/** What a cell came to with real processes over a real Redis, or over the process that forked them. */
export type MeasuredCell = Awaited<ReturnType<typeof measured>>

/** All cells, one after another. */
export async function* measuredCells(keeper: Keeper, seconds: number): AsyncGenerator<MeasuredCell> {
  const server = keeper === 'redis' ? await RedisProcess.start() : undefined
  try {
    for (const nodes of NODES) {
      for (const requestsPerLease of REQUESTS_PER_LEASE) {
        for (const demand of DEMANDS) {
          yield await calmest(server?.url, { policy: 'token-bucket', arrivals: 'random', nodes, requestsPerLease, demand }, seconds)
        }
      }
    }
  } finally {
    await server?.stop()
  }
}

/** Repeated while calls took half as long as a lease: then the figures are those of a machine that has no time. */
async function calmest(url: string | undefined, cell: UseCell, seconds: number): Promise<MeasuredCell> {
  let found = await measured(url, cell, seconds, 1)
  for (let run = 2; run <= MOST_RUNS && found.exactP99Ms > CALM_MS; run++) {
    const again = await measured(url, cell, seconds, run)
    if (again.exactP99Ms < found.exactP99Ms) found = again
  }
  return found
}

async function measured(url: string | undefined, cell: UseCell, seconds: number, run: number) {
  const name = `use-${cell.nodes}-${cell.requestsPerLease}-${cell.demand}-${run}`
  const processes = Array.from({ length: cell.nodes }, () => fork(new URL('./use-node.js', import.meta.url)))
  const served = url === undefined ? MODES.map((mode) => serveLimiter(namedPolicy(cell, name, mode), { mode })) : []
  for (const limiter of served) for (const child of processes) limiter.serve(child)
  const startAtMs = Date.now() + 1_000 + 150 * cell.nodes
  const reports = await Promise.all(
    processes.map(async (child, node): Promise<UseReport> => {
      const task: UseTask = { url, name, cell, node, seconds, seed: 1, startAtMs }
      const answer = reportOf(child)
      child.send(task)
      return answer
    }),
  )
  for (const limiter of served) limiter.close()
  const sumOf = (of: (report: UseReport) => number): number => reports.reduce((sum, report) => sum + of(report), 0)
  const requests = sumOf((report) => report.requests)
  return {
    ...cell,
    requests,
    exactAdmitted: sumOf(({ exact }) => exact.admitted),
    leasedAdmitted: sumOf(({ leased }) => leased.admitted),
    callsPerRequest: sumOf(({ leased }) => leased.calls) / requests,
    /** Of all takes, those decided in the process among them. */
    exactP99Ms: p99(reports.flatMap(({ exact }) => exact.tookMs)),
    leasedP99Ms: p99(reports.flatMap(({ leased }) => leased.tookMs)),
    withoutStore: sumOf(({ exact, leased }) => exact.withoutStore + leased.withoutStore),
  }
}

/** Beside it the channel carries the messages of limiters. */
function reportOf(child: ChildProcess): Promise<UseReport> {
  return new Promise((resolve, reject) => {
    child.on('message', (message) => {
      if (message !== null && typeof message === 'object' && 'leased' in message) resolve(message as UseReport)
    })
    child.once('exit', (code) => reject(new Error(`a process of the run ended with code ${code}`)))
  })
}
