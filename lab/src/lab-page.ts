import { filledPage } from 'sluicegate-testkit/markdown-tables.js'
import { columnTable } from './lab-report.js'
import { linePlotSvg } from './line-plot.js'
import { oceanParts, oceanPlot, type SavedOceans } from './ocean/ocean-page.js'
import { panelsSvg } from './panels-plot.js'
import type { ScenarioResult } from './run-scenario.js'

/** Where, when and how results were measured. */
interface LabSetting {
  /** The machine and the date. */
  readonly where: string
  readonly seed: number
  readonly nodes: number
  readonly rate: number
}

/** Each scenario once, as `lab/results/lab.json` has it. */
export interface SavedLab extends LabSetting {
  readonly results: readonly ScenarioResult[]
}

/** What of a scenario in a soak is kept. */
export type SoakResult = Pick<ScenarioResult, 'name' | 'seed' | 'sent' | 'errors' | 'over' | 'allowedOver' | 'recovery' | 'violations'> & {
  readonly endedMinute: number
}

export function soakResult(result: ScenarioResult, endedMinute: number): SoakResult {
  const { name, seed, sent, errors, over, allowedOver, recovery, violations } = result
  return { name, seed, sent, errors, over, allowedOver, recovery, violations, endedMinute }
}

/** Scenarios in random order, as `lab/results/soak.json` has them. */
export interface SavedSoak extends LabSetting {
  readonly minutes: number
  readonly results: readonly SoakResult[]
}

/** Results on which a page is made; a missing one leaves its places as they are. */
export interface SavedRuns extends SavedOceans {
  readonly lab?: SavedLab
  readonly soak?: SavedSoak
}

/** The parts of docs/lab.md that come out of runs, by the names of their places in it. */
function labParts({ lab, soak, ...oceans }: SavedRuns): ReadonlyMap<string, string> {
  return new Map([
    ...(lab === undefined ? [] : ([['figures', `${figuresTable(lab)}\n\n${settingText(lab)}`]] as const)),
    ...(soak === undefined ? [] : ([['soak', `${soakText(soak)} ${settingText(soak)}`]] as const)),
    ...oceanParts(oceans),
  ])
}

/** The page with its tables made anew. */
export function filledLabPage(page: string, runs: SavedRuns): string {
  return filledPage(page, 'lab', labParts(runs))
}

/** The plots of the page, by file. */
export function labPlots({ lab, soak, ocean }: SavedRuns): ReadonlyMap<string, string> {
  return new Map([
    ...(lab === undefined ? [] : ([['lab-scenarios.svg', scenariosPlot(lab)]] as const)),
    ...(soak === undefined ? [] : ([['lab-soak.svg', soakPlot(soak)]] as const)),
    ...(ocean === undefined ? [] : ([['lab-ocean.svg', oceanPlot(ocean)]] as const)),
  ])
}

function figuresTable({ results }: SavedLab): string {
  return columnTable(results, {
    scenario: ({ name }) => name,
    'answers/s': ({ perSecond }) => perSecond.toFixed(0),
    '99 %, ms': ({ p99Ms }) => p99Ms.toFixed(0),
    'slow decisions': ({ slowDecisions }) => String(slowDecisions),
    'failed requests': ({ errors }) => String(errors),
    'tokens over': ({ over }) => over.toFixed(0),
    'allowed over': ({ allowedOver }) => allowedOver.toFixed(0),
    'not admitted': ({ recovery }) => (recovery === null ? '' : String(recovery.lost)),
    'recovered after, s': ({ recovery }) => (recovery === null ? '' : secondsText(recovery.seconds)),
  })
}

function soakText({ minutes, results }: SavedSoak): string {
  const violations = results.reduce((sum, each) => sum + each.violations.length, 0)
  const worst = Math.max(...results.map(({ over }) => over))
  const counts = `${sumOf(results, 'sent').toLocaleString('en')} requests, of which ${sumOf(results, 'errors')} failed`
  const times = results.flatMap(({ recovery }) => recovery?.seconds ?? [])
  return `${minutes} minutes, ${results.length} scenarios, ${counts}, **${violations} violations**. At most ${worst.toFixed(0)} tokens over, within what is allowed; recovered after ${secondsText(medianOf(times))} s (median), ${secondsText(Math.max(...times))} s at most.`
}

function settingText({ where, seed, nodes, rate }: LabSetting): string {
  return `${where}; ${nodes} nodes, ${rate} requests a second, seed ${seed}.`
}

function scenariosPlot({ where, results }: SavedLab): string {
  return panelsSvg(
    'Rate against budget while parts of the system fail',
    where,
    results.map(({ name, plot, marks }) => ({ title: name, xs: plot.xs, ys: plot.admitted, budget: plot.budget, faults: marks })),
  )
}

function soakPlot({ where, results }: SavedSoak): string {
  return linePlotSvg({
    title: 'Worst key of each scenario of the soak',
    subtitle: where,
    xName: 'minutes from the start',
    yName: 'tokens over the policy',
    xs: results.map(({ endedMinute }) => endedMinute),
    curves: [
      { name: 'over', ys: results.map(({ over }) => over) },
      { name: 'allowed: outages, failovers', ys: results.map(({ allowedOver }) => allowedOver), isDashed: true },
    ],
  })
}

function secondsText(seconds: number | null): string {
  return seconds === null || seconds === Number.POSITIVE_INFINITY ? 'later' : seconds.toFixed(1)
}

function sumOf(results: readonly SoakResult[], member: 'sent' | 'errors'): number {
  return results.reduce((sum, each) => sum + each[member], 0)
}

function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] as number
}
