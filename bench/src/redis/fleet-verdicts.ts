import type { Verdict } from '../question.js'
import { ratios, summaryOf } from '../samples.js'
import { type CellResult, MOST_CALLERS, type Shape } from './cell.js'
import type { FleetContenderName } from './contenders.js'
import { type FleetResults, resultOf } from './fleet-results.js'
import { TOPOLOGIES, type Topology } from './servers.js'
import { FIGURES, figureOf } from './stint.js'

const SERVERS: Readonly<Record<Topology, string>> = { standalone: 'one server', cluster: 'cluster' }

/** The targets, each by its median, as far as the cells are there. A ratio is taken between runs of the same round. */
export function fleetVerdicts(results: FleetResults): Verdict[] {
  return TOPOLOGIES.flatMap((topology) => {
    const at = (contender: FleetContenderName, shape: Shape): CellResult | undefined =>
      resultOf(results, { contender, topology, shape, callers: MOST_CALLERS, pace: 0 })
    const leased = at('sluicegate leased', 'per_user')
    const where = SERVERS[topology]
    return [
      ...atLeastTimes(`leased over exact, a key each, ops/s, ${where}`, leased, at('sluicegate exact', 'per_user'), 50),
      ...(leased === undefined ? [] : leasedVerdicts(leased, where)),
      ...atLeastTimes(
        `leased over exact, one hot key, ops/s, ${where}`,
        at('sluicegate leased', 'hot_key'),
        at('sluicegate exact', 'hot_key'),
        100,
      ),
      ...(['per_user', 'hot_key'] as const).flatMap((shape) => exactVerdicts(at, shape, where)),
    ]
  })
}

function leasedVerdicts(leased: CellResult, where: string): Verdict[] {
  const calls = figureOf(leased, 'callsPerAdmitted')
  const use = figureOf(leased, 'leasedBudgetPercent')
  const over = figureOf(leased, 'overGrant')
  return [
    {
      what: `leased, a key each: calls an admitted token, ${where}`,
      target: '<= 0.06',
      measured: calls,
      unit: 'calls',
      met: calls.median <= 0.06,
    },
    {
      what: `leased, a key each: of burst - rate * L + rate * t, ${where}`,
      target: '>= 99 %',
      measured: use,
      unit: '%',
      met: use.median >= 99,
    },
    // One token too many in one run is one too many.
    { what: `leased, a key each: over-grant, ${where}`, target: '0', measured: over, unit: 'tokens', met: over.max === 0 },
  ]
}

function exactVerdicts(
  at: (contender: FleetContenderName, shape: Shape) => CellResult | undefined,
  shape: Shape,
  where: string,
): Verdict[] {
  const keys = shape === 'per_user' ? 'a key each' : 'one hot key'
  const pairs = [
    ['node-redis', at('sluicegate exact', shape), at('rate-limiter-flexible', shape)],
    ['ioredis', at('sluicegate exact, ioredis', shape), at('rate-limiter-flexible, ioredis', shape)],
  ] as const
  return pairs.flatMap(([client, ours, theirs]) =>
    atLeastTimes(`exact over rate-limiter-flexible, both on ${client}, ${keys}, ops/s, ${where}`, ours, theirs, 1.2),
  )
}

function atLeastTimes(what: string, over: CellResult | undefined, under: CellResult | undefined, bound: number): Verdict[] {
  if (over === undefined || under === undefined) return []
  const runs = Math.min(over.runs.length, under.runs.length)
  const opsPerS = (result: CellResult): number[] => result.runs.slice(0, runs).map(FIGURES.opsPerS)
  const measured = summaryOf(ratios(opsPerS(over), opsPerS(under)))
  return [{ what, target: `>= ${bound}`, measured, unit: 'x', met: measured.median >= bound }]
}
