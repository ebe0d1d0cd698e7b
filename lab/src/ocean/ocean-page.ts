import { columnTable } from '../lab-report.js'
import { type Panel, panelsSvg } from '../panels-plot.js'
import type { OceanResult } from './run-ocean.js'

/** A run of scenarios with three regions. */
export interface SavedOcean {
  /** The machine and the date. */
  readonly where: string
  readonly seed: number
  readonly results: readonly OceanResult[]
}

/** What of a scenario in a soak is kept. */
type OceanSoakResult = Pick<OceanResult, 'name' | 'seed' | 'sent' | 'errors' | 'over' | 'allowedOver' | 'violations'>

/** A soak: scenarios in random order. */
export interface SavedOceanSoak extends Omit<SavedOcean, 'results'> {
  readonly minutes: number
  readonly results: readonly OceanSoakResult[]
}

export function oceanSoakResult({ name, seed, sent, errors, over, allowedOver, violations }: OceanResult): OceanSoakResult {
  return { name, seed, sent, errors, over: Math.round(over), allowedOver: Math.round(allowedOver), violations }
}

/** A missing one leaves its places as they are. */
export interface SavedOceans {
  readonly ocean?: SavedOcean
  readonly oceanSoak?: SavedOceanSoak
}

/** The parts of docs/lab.md, by the names of their places in it. */
export function oceanParts({ ocean, oceanSoak }: SavedOceans): (readonly [place: string, text: string])[] {
  return [
    ...(ocean === undefined ? [] : [['ocean', `${oceanTable(ocean)}\n\n${ocean.where}; seed ${ocean.seed}.`] as const]),
    ...(oceanSoak === undefined ? [] : [['ocean-soak', oceanSoakText(oceanSoak)] as const]),
  ]
}

/** The plot of docs/lab.md: what each region admitted, and all of them together. */
export function oceanPlot({ where, results }: SavedOcean): string {
  const panels = results.map(({ name, plot, marks }): Panel => {
    const ys = plot.xs.map((_, i) => plot.byRegion.reduce((sum, each) => sum + (each[i] ?? 0), 0))
    return { title: name, xs: plot.xs, ys, parts: plot.byRegion, budget: plot.budget, faults: marks }
  })
  return panelsSvg('Rate of three regions against their one budget', where, panels)
}

function oceanTable({ results }: SavedOcean): string {
  return columnTable(results, {
    scenario: ({ name }) => name.replace('ocean: ', ''),
    policy: ({ policy }) => policy,
    '50 / 99 %, ms': ({ p50Ms, p99Ms }) => `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(0)}`,
    'calls to the home, a second and region': ({ homeCalls }) => homeCalls.toFixed(1),
    'tokens over': ({ over }) => over.toFixed(0),
    'allowed over': ({ allowedOver }) => allowedOver.toFixed(0),
    'failed requests': ({ errors }) => String(errors),
  })
}

function oceanSoakText({ where, seed, minutes, results }: SavedOceanSoak): string {
  const sum = (of: (each: OceanSoakResult) => number): number => results.reduce((all, each) => all + of(each), 0)
  const counts = `${results.length} scenarios, ${sum(({ sent }) => sent).toLocaleString('en')} requests, of which ${sum(({ errors }) => errors)} failed`
  const worst = Math.max(0, ...results.map(({ over, allowedOver }) => over - allowedOver))
  const violations = sum((each) => each.violations.length)
  return `${minutes} minutes, ${counts}, **${violations} violations**. At most ${worst.toFixed(0)} tokens over what is allowed. ${where}, seed ${seed}.`
}
