import { filledPage, markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import { columnTable } from '../column-table.js'
import { linePlotSvg } from '../line-plot.js'
import type { ComparedRun } from './compared-runs.js'
import { DEMANDS, type KeyCost, REQUESTS_PER_LEASE } from './key-cost.js'
import type { ScaleResults } from './scale-run.js'
import { GROWTH } from './scale-sweeps.js'

/** The share of a shard's processor time that a plan may use. */
const PLANNED_LOAD = 0.6

/** Nodes from which on it matters which way a system takes. */
const LARGE_SYSTEM = 1_000

type Growth = ScaleResults['growth'][number]

/** The tables of docs/scale.md, by the names of their places in it. */
export function scaleTables(results: ScaleResults): ReadonlyMap<string, string> {
  return new Map([
    ['costs', costsTable(results)],
    ['when', whenTable(results.keyCosts)],
    ['nodes', nodesTable(results.growth)],
    ['overload', overloadTable(results)],
    ['systems', systemsTable(results)],
    ['shards', shardsTable(results)],
    ['errors', errorsText(results)],
    ['where', `${results.where}.`],
  ])
}

/** The page with its tables made anew. */
export function filledScale(page: string, results: ScaleResults): string {
  return filledPage(page, 'scale', scaleTables(results))
}

/** The plots of the page, by file. */
export function scalePlots(results: ScaleResults): ReadonlyMap<string, string> {
  return new Map([
    ['scale-leases.svg', leasesPlot(results)],
    ['scale-nodes.svg', nodesPlot(results)],
  ])
}

function costsTable({ measured, growth }: ScaleResults): string {
  const { exactUs, leaseUs, connectionBytes, storeKeyBytes, nodeKeyBytes } = measured
  const [few, more] = growth.filter(({ leaseMs }) => leaseMs === GROWTH.leasesMs[0]) as [Growth, Growth]
  const perNode = (more.callsPerSecond - few.callsPerSecond) / (more.nodes - few.nodes)
  const perShard = (us: number): string => rounded((PLANNED_LOAD * 1e6) / us)
  return markdownTable(
    ['one more', 'costs', 'gives'],
    [
      [
        'node',
        `a connection to each shard, ${kilobytes(connectionBytes)} there; ${perNode.toFixed(0)} calls a second for each key that it keeps busy, leased`,
        'no more admissions: the limit of a key is that of all nodes',
      ],
      [
        'key',
        `${storeKeyBytes.toFixed(0)} bytes in the store until it is full again; ${kilobytes(nodeKeyBytes)} in each node that leases it; 0.02 to 1 call for each request`,
        'nothing to other keys: keys do not wait for each other',
      ],
      [
        'shard',
        'a connection from each node',
        `${perShard(exactUs)} exact calls or ${perShard(leaseUs)} leases a second at ${PLANNED_LOAD * 100} % of a processor; nothing to a key, which lives on one shard`,
      ],
      [
        'region',
        'one or two messages a second for each key whose limit it shares',
        'decisions within the region, also while it is cut off',
      ],
    ],
  )
}

function whenTable(costs: readonly KeyCost[]): string {
  const head = ['requests a lease', ...DEMANDS.map((demand) => `demand ${demand} x limit`)]
  const rows = REQUESTS_PER_LEASE.map((requests) => {
    const own = costs.filter(({ requestsPerLease }) => requestsPerLease === requests)
    const cells = own.map(({ callsPerRequest, served }) =>
      callsPerRequest === undefined ? 'exact' : `${callsPerRequest.toFixed(2)}/${(Math.min(1, served) * 100).toFixed(0)}`,
    )
    return [String(requests), ...cells]
  })
  return markdownTable(head, rows)
}

function nodesTable(growth: ScaleResults['growth']): string {
  const rows = GROWTH.nodes.map((nodes) => [
    nodes.toLocaleString('en'),
    ...GROWTH.leasesMs.flatMap((leaseMs) => {
      const found = growth.find((each) => each.nodes === nodes && each.leaseMs === leaseMs) as Growth
      const requests = (GROWTH.perSecond * leaseMs) / 1000 / nodes
      return [requests.toLocaleString('en'), rounded(found.callsPerSecond), percent(found.budgetUse)]
    }),
    GROWTH.perSecond.toLocaleString('en'),
  ])
  const of = GROWTH.leasesMs.flatMap((leaseMs) => {
    const length = lengthText(leaseMs)
    return [`requests a lease and node, ${length}`, `calls/s, ${length}`, `limit used, ${length}`]
  })
  return markdownTable(['nodes', ...of, 'calls/s, exact'], rows)
}

/** Loads that the store cannot answer; below these nothing is decided without it. */
function overloadTable({ overload }: ScaleResults): string {
  return columnTable(
    overload.filter(({ load }) => load > 1),
    {
      'calls over what the store can answer': ({ load }) => percent(load),
      '`localShare`': ({ localShare }) => String(localShare),
      '99 %, ms': ({ p99Ms }) => p99Ms.toFixed(0),
      'decided without the store': ({ withoutStore }) => percent(withoutStore),
      'limit used': ({ budgetUse }) => percent(budgetUse),
    },
  )
}

function systemsTable({ systems, measured }: ScaleResults): string {
  const large = systems.filter(({ nodes }) => nodes >= LARGE_SYSTEM)
  const usOf = ({ isLeased }: (typeof large)[number]): number => (isLeased ? measured.leaseUs : measured.exactUs)
  return columnTable(large, {
    nodes: ({ nodes }) => nodes.toLocaleString('en'),
    way: ({ way }) => way,
    'calls/s': ({ callsPerSecond }) => rounded(callsPerSecond),
    'calls a request': ({ callsPerRequest }) => callsPerRequest.toFixed(2),
    shards: (row) => Math.max(1, Math.ceil((row.callsPerSecond * usOf(row)) / (PLANNED_LOAD * 1e6))).toLocaleString('en'),
    'busiest key, of a shard': (row) => belowOrPercent((row.hottestCallsPerSecond * usOf(row)) / 1e6),
    'connections a shard': ({ callers }) => `${callers.toLocaleString('en')}, ${megabytes(callers * measured.connectionBytes)}`,
  })
}

function shardsTable({ busiest }: ScaleResults): string {
  return columnTable(busiest, {
    shards: ({ shards }) => String(shards),
    'busiest shard, exact': ({ exact }) => `${exact.toFixed(2)} x mean`,
    'busiest shard, leases': ({ leased }) => `${leased.toFixed(2)} x mean`,
  })
}

/** How far the runs of each kind are from what they are compared with. */
function errorsText({ measuredRuns, coarseRuns }: ScaleResults): string {
  const isOfServices = ({ what }: ComparedRun): boolean => what.startsWith('many servers')
  const isOfSum = ({ what }: ComparedRun): boolean => what.startsWith('sum')
  const worst = (runs: readonly ComparedRun[]): string => {
    const calls = runs.map(({ callsPerRequest: [from, to] }) => Math.abs(to / from - 1))
    const use = runs.flatMap(({ budgetUse }) => (budgetUse === undefined ? [] : [Math.abs(budgetUse[1] - budgetUse[0]) * 100]))
    const ofCalls = `${(Math.max(...calls) * 100).toFixed(1)} % of the calls`
    return use.length === 0 ? ofCalls : `${ofCalls}, ${Math.max(...use).toFixed(1)} points of the limit used`
  }
  return markdownTable(
    ['calibration error', 'at most'],
    [
      ['exact simulation, against measured limiters', worst(measuredRuns.filter((run) => !isOfServices(run)))],
      ['exact simulation, against the service nodes', worst(measuredRuns.filter(isOfServices))],
      ['coarse simulation, against the exact one', worst(coarseRuns.filter((run) => !isOfSum(run)))],
      ['sum over keys, against the exact simulation', worst(coarseRuns.filter(isOfSum))],
    ],
  )
}

function leasesPlot({ keyCosts: costs, where }: ScaleResults): string {
  const xs = REQUESTS_PER_LEASE.filter((requests) => requests >= 0.2)
  const ofDemand = (demand: number): KeyCost[] =>
    xs.map((requests) => costs.find((cost) => cost.demand === demand && cost.requestsPerLease === requests) as KeyCost)
  const shown = DEMANDS.filter((demand) => demand <= 2)
  return linePlotSvg({
    title: 'What leases save, and what they leave unused',
    subtitle: `simulated, 16 nodes, one key; ${where}`,
    xName: 'requests of a node for the key in the length of a lease',
    yName: 'share',
    xs,
    xScale: 'log',
    curves: [
      ...shown.map((demand) => ({ name: `calls, ${demand} x`, ys: ofDemand(demand).map(({ callsPerRequest = 1 }) => callsPerRequest) })),
      ...shown.map((demand) => ({
        name: `limit used, ${demand} x`,
        ys: ofDemand(demand).map(({ served }) => Math.min(1, served)),
        isDashed: true,
      })),
    ],
  })
}

function nodesPlot({ growth, where }: ScaleResults): string {
  return linePlotSvg({
    title: 'Calls for one key of 10,000 requests a second, demand twice as high',
    subtitle: `simulated; ${where}`,
    xName: 'nodes',
    yName: 'calls to the store per second',
    xs: GROWTH.nodes,
    xScale: 'log',
    yScale: 'log',
    curves: [
      ...GROWTH.leasesMs.map((leaseMs) => ({
        name: `leases of ${lengthText(leaseMs)}`,
        ys: growth.filter((each) => each.leaseMs === leaseMs).map(({ callsPerSecond }) => callsPerSecond),
      })),
      { name: 'exact', ys: GROWTH.nodes.map(() => GROWTH.perSecond), isDashed: true },
    ],
  })
}

function percent(share: number): string {
  return `${(share * 100).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`
}

function belowOrPercent(share: number): string {
  return share < 0.001 ? 'below 0.1 %' : percent(share)
}

/** Two digits are what the simulation is good for. */
function rounded(value: number): string {
  return value < 10 ? value.toFixed(value === 0 ? 0 : 1) : Number(value.toPrecision(2)).toLocaleString('en')
}

function lengthText(ms: number): string {
  return ms < 1000 ? `${ms} ms` : `${ms / 1000} s`
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(bytes < 10_240 ? 1 : 0)} KB`
}

function megabytes(bytes: number): string {
  const mb = bytes / 1024 / 1024
  return mb >= 1024 ? `${(mb / 1024).toFixed(1)} GB` : `${mb.toFixed(mb < 10 ? 1 : 0)} MB`
}
