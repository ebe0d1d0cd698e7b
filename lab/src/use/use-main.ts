import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { machineText } from 'sluicegate-server/dist/load/machine-text.js'
import { RedisProcess } from 'sluicegate-testkit/servers/redis-process.js'
import type { UseCell } from './use-cell.js'
import type { UseReport, UseTask } from './use-node.js'

const USAGE = `npm run bench:use -- [--seconds 12] [--save]

Real processes over a real Redis: each request is a take at an exact limiter and one at a leased one. Prints what leases admit of what exact
mode admits, and their calls; --save also writes bench/results/use.json. Seven minutes.`

const RESULTS = new URL('../../../bench/results/use.json', import.meta.url)
const NODES = [2, 4, 16]
const REQUESTS_PER_LEASE = [1, 2, 10, 50]
const DEMANDS = [0.9, 2]

interface UseRow extends UseCell {
  readonly requests: number
  readonly exactAdmitted: number
  readonly leasedAdmitted: number
  readonly callsPerRequest: number
  readonly exactP99Ms: number
  readonly leasedP99Ms: number
  readonly withoutStore: number
}

const options = process.argv.slice(2)
if (options.includes('--help')) console.log(USAGE)
else await run(Number(options[options.indexOf('--seconds') + 1] ?? 12) || 12, options.includes('--save'))

async function run(seconds: number, isSaved: boolean): Promise<void> {
  const server = await RedisProcess.start()
  const rows: UseRow[] = []
  try {
    for (const nodes of NODES) {
      for (const requestsPerLease of REQUESTS_PER_LEASE) {
        for (const demand of DEMANDS) {
          const cell = { policy: 'token-bucket', arrivals: 'random', nodes, requestsPerLease, demand } as const
          const row = await measured(server.url, cell, seconds)
          rows.push(row)
          console.log(lineOf(row))
        }
      }
    }
  } finally {
    await server.stop()
  }
  if (!isSaved) return
  mkdirSync(new URL('.', RESULTS), { recursive: true })
  const where = `${machineText()}, ${new Date().toISOString().slice(0, 10)}`
  writeFileSync(RESULTS, `${JSON.stringify({ where, seconds, rows }, undefined, 1)}\n`)
}

async function measured(url: string, cell: UseCell, seconds: number): Promise<UseRow> {
  const prefix = `use-${cell.nodes}-${cell.requestsPerLease}-${cell.demand}`
  const processes = Array.from({ length: cell.nodes }, () => fork(new URL('./use-node.js', import.meta.url)))
  const startAtMs = Date.now() + 1_000 + 150 * cell.nodes
  const reports = await Promise.all(
    processes.map(async (child, node): Promise<UseReport> => {
      const task: UseTask = { url, prefix, cell, node, seconds, seed: 1, startAtMs }
      const answer = once(child, 'message')
      child.send(task)
      const [report] = await answer
      return report as UseReport
    }),
  )
  const sumOf = (of: (report: UseReport) => number): number => reports.reduce((sum, report) => sum + of(report), 0)
  const requests = sumOf((report) => report.requests)
  return {
    ...cell,
    requests,
    exactAdmitted: sumOf(({ exact }) => exact.admitted),
    leasedAdmitted: sumOf(({ leased }) => leased.admitted),
    callsPerRequest: sumOf(({ leased }) => leased.calls) / requests,
    exactP99Ms: p99(reports.flatMap(({ exact }) => exact.callsMs)),
    leasedP99Ms: p99(reports.flatMap(({ leased }) => leased.callsMs)),
    withoutStore: sumOf(({ exact, leased }) => exact.withoutStore + leased.withoutStore),
  }
}

function p99(values: number[]): number {
  return values.sort((a, b) => a - b)[Math.floor(0.99 * values.length)] ?? 0
}

function lineOf({ nodes, requestsPerLease, demand, requests, exactAdmitted, leasedAdmitted, ...row }: UseRow): string {
  const { callsPerRequest, exactP99Ms, leasedP99Ms, withoutStore } = row
  return [
    `| ${nodes}`,
    requestsPerLease,
    demand,
    `${((100 * exactAdmitted) / requests).toFixed(1)} %`,
    `${((100 * leasedAdmitted) / exactAdmitted).toFixed(1)} %`,
    callsPerRequest.toFixed(3),
    exactP99Ms.toFixed(1),
    leasedP99Ms.toFixed(1),
    `${withoutStore} |`,
  ].join(' | ')
}
