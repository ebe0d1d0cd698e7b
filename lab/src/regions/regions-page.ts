import { filledPage, markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import { linePlotSvg } from '../line-plot.js'
import { PHASES, type Phase } from './region-traffic.js'
import { SHARED, WAYS, type WayName } from './region-ways.js'

/** What one way did with the traffic. */
export interface MeasuredWay {
  readonly way: WayName
  /** Tokens of the worst interval over the policy, before the far store died, and in all. */
  readonly over: number
  readonly overDead: number
  readonly phases: readonly MeasuredPhase[]
  readonly bySecond: readonly number[]
}

interface MeasuredPhase {
  readonly name: Phase['name']
  readonly seconds: number
  readonly asked: number
  readonly allowed: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** To the far store, a second and region. */
  readonly messages: number
}

export interface SimulatedPhase {
  readonly name: Phase['name']
  readonly use: number
  readonly messages: number
}

export interface SavedRegions {
  readonly where: string
  readonly seed: number
  readonly found: readonly MeasuredWay[]
  /** Of the home and regions, on the traffic that was simulated too. */
  readonly checked: readonly MeasuredPhase[]
  readonly simulated: readonly SimulatedPhase[]
}

/** docs/regions.md with its table made anew. */
export function filledRegions(page: string, saved: SavedRegions): string {
  const text = `${comparedTable(saved.found)}\n\n${simulationText(saved)} ${saved.where}, seed ${saved.seed}.`
  return filledPage(page, 'lab', new Map([['regions', text]]))
}

export function comparedTable(found: readonly MeasuredWay[]): string {
  return markdownTable(
    [
      ...['way', 'tokens over', 'use at 2 x', 'at 0.9 x', 'after a shift', '50 / 99 %, ms', 'messages'],
      ...['use, a region dead', 'use, far store dead'],
    ],
    found.map((each) => {
      const of = (name: Phase['name']): string => percent(useOf(phaseOf(each, name)))
      const { p50Ms, p99Ms, messages } = phaseOf(each, 'twice')
      return [
        ...[WAYS[each.way], each.over.toFixed(0), of('twice'), of('below'), of('shift'), `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(0)}`],
        ...[messages.toFixed(1), of('region'), of('home')],
      ]
    }),
  )
}

/** How far the simulation is from what was measured. */
export function simulationText({ checked, simulated }: SavedRegions): string {
  const cells = simulated.map(({ name, use, messages }) => {
    const phase = phaseOf({ phases: checked }, name)
    const text = name === 'below' ? 'at 0.9 x' : 'after the shift'
    const isNear = Math.abs(use / useOf(phase) - 1) <= AGREES && Math.abs(messages / phase.messages - 1) <= AGREES
    return `${text} use ${percent(use)} and ${percent(useOf(phase))}, messages ${messages.toFixed(2)} and ${phase.messages.toFixed(2)} (${isNear ? 'within' : '**not** within'} 10 %)`
  })
  return `Simulation (mean of 10 runs) and lab, 18 s each: ${cells.join('; ')}.`
}

const AGREES = 0.1

/** The plot of the page. */
export function regionsPlot({ where, found }: SavedRegions): string {
  const xs = found[0]?.bySecond.map((_, i) => i) ?? []
  const starts = PHASES.map((_, i) => PHASES.slice(0, i).reduce((sum, { seconds }) => sum + seconds, 0))
  const dead = PHASES.findIndex((phase) => phase.dead === 'home')
  const fromX = starts[dead] ?? 0
  return linePlotSvg({
    title: 'Admitted in three regions under five ways of sharing 100 a second',
    subtitle: where,
    xName: 'seconds',
    yName: 'admitted per second',
    xs: xs.slice(PHASES[0]?.seconds),
    curves: [
      ...found.map(({ way, bySecond }) => ({ name: WAYS[way], ys: bySecond.slice(PHASES[0]?.seconds) })),
      { name: 'limit', ys: xs.slice(PHASES[0]?.seconds).map(() => SHARED.limit), isDashed: true },
    ],
    mark: { fromX, toX: fromX + (PHASES[dead]?.seconds ?? 0), label: 'far store dead' },
  })
}

function phaseOf({ phases }: Pick<MeasuredWay, 'phases'>, name: Phase['name']): MeasuredPhase {
  return phases.find((phase) => phase.name === name) as MeasuredPhase
}

/** Of what the limit lets pass of the demand. */
function useOf({ asked, allowed, seconds }: MeasuredPhase): number {
  return allowed / Math.max(1, Math.min(asked, SHARED.limit * seconds))
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}
