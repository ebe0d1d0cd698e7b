import { type Chart, COLORS, type Line } from '../chart.js'
import { CALLERS, SHAPES, type Shape } from './cell.js'
import type { FleetContenderName } from './contenders.js'
import { type FleetResults, resultOf } from './fleet-results.js'
import { TOPOLOGIES, type Topology } from './servers.js'
import { figureOf } from './stint.js'

/** On one client, so that the lines differ in nothing else. */
const DRAWN: readonly FleetContenderName[] = [
  'sluicegate leased',
  'sluicegate exact',
  'rate-limiter-flexible',
  'batch borrow',
  "Lua, server's clock",
  'MULTI/EXEC, racy',
  'WATCH/MULTI/EXEC',
]
const MORE_COLORS = ['#7c5cc4', '#a08c2c']

/** Decisions a second over the number of callers: a plot for each kind of server and of keys, by the name of its file. */
export function fleetPlots(results: FleetResults): ReadonlyMap<string, Chart> {
  const plots = TOPOLOGIES.flatMap((topology) =>
    SHAPES.map((shape): [string, Chart] => [`redis-${topology}-${shape.replace('_', '-')}`, overCallers(results, topology, shape)]),
  )
  return new Map(plots.filter(([, { lines }]) => lines.length > 0))
}

function overCallers(results: FleetResults, topology: Topology, shape: Shape): Chart {
  const lines = DRAWN.flatMap((contender, index): Line[] => {
    const points = CALLERS.flatMap((callers) => {
      const result = resultOf(results, { contender, topology, shape, callers, pace: 0 })
      if (result === undefined) return []
      const { median, lowerQuartile, upperQuartile } = figureOf(result, 'opsPerS')
      return [{ x: String(callers), y: median, low: lowerQuartile, high: upperQuartile }]
    })
    return points.length === CALLERS.length ? [{ name: contender, color: [...COLORS, ...MORE_COLORS][index] as string, points }] : []
  })
  const keys = shape === 'hot_key' ? 'one hot key' : 'a key for each caller'
  const servers = topology === 'cluster' ? 'a cluster of three primaries' : 'one server'
  const title = `Decisions a second, ${keys}, ${servers}`
  const { machine } = results
  const subtitle = `Median and quartiles, node-redis. ${machine.cpu}, ${machine.cores} cores for load and servers, Node ${machine.node.split(' ')[0]}, ${results.finishedAt.slice(0, 10)}`
  return { title, subtitle, xName: 'callers', yName: 'decisions a second', yScale: 'log', lines }
}
