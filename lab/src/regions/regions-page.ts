import { filledPage, markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import { linePlotSvg } from '../line-plot.js'
import type { MeasuredPhase, MeasuredWay } from './region-figures.js'
import { CHECKED, PHASES, type Phase, RUNS } from './region-traffic.js'
import { SHARED, WAYS } from './region-ways.js'

export interface SimulatedPhase {
  readonly name: Phase['name']
  readonly use: number
  readonly calls: number
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
  const cells = simulated.map(({ name, use, calls }) => {
    const phase = phaseOf({ phases: checked }, name)
    const text = name === 'below' ? 'at 0.9 x' : 'after the shift'
    const figures = `use ${percent(use)} and ${percent(useOf(phase))}, calls ${calls.toFixed(2)} and ${(phase.calls ?? 0).toFixed(2)}`
    return `${text} ${figures} (${isNear({ name, use, calls }, checked) ? 'within' : '**not** within'} 10 %)`
  })
  const seconds = (of: Phase['name']): number => CHECKED.find(({ name }) => name === of)?.seconds ?? 0
  return `Simulation (mean of ${RUNS} runs) and lab, ${seconds('below')} and ${seconds('shift')} s: ${cells.join('; ')}.`
}

const AGREES = 0.1

/** Whether the simulation of a phase agrees with what was measured: use, and calls to the home. */
export function isNear({ name, use, calls }: SimulatedPhase, checked: SavedRegions['checked'], most = AGREES): boolean {
  const phase = phaseOf({ phases: checked }, name)
  return Math.abs(use / useOf(phase) - 1) <= most && Math.abs(calls / (phase.calls ?? 0) - 1) <= most
}

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

function phaseOf({ phases }: { readonly phases: readonly MeasuredPhase[] }, name: Phase['name']): MeasuredPhase {
  return phases.find((phase) => phase.name === name) as MeasuredPhase
}

/** Of what the limit lets pass of the demand. */
function useOf({ asked, allowed, seconds }: MeasuredPhase): number {
  return allowed / Math.max(1, Math.min(asked, SHARED.limit * seconds))
}

function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}
