import { summaryOf } from 'sluicegate-testkit/samples.js'
import type { Compared, LabFiles, OceanResult, Saved, SavedLab, ScenarioResult, SoakResult } from '../../../lab/dist/saved-runs.js'
import { type OverTime, overTimeSvg, type Panel, panelsSvg } from '../chart.js'
import type { Report } from '../report.js'
import { percent, type Table, tableOf } from '../table.js'

/** The files of the lab, each with its name. */
export type LabResults = { [Name in keyof LabFiles]: LabFiles[Name] & { readonly kind: Name } }[keyof LabFiles]

const LAB = { pages: ['lab.md'], tables: [] }

/** What a file of the lab says. */
export function labReport(saved: LabResults): Report {
  const { where } = saved
  switch (saved.kind) {
    case 'lab': {
      const svg = () => panelsSvg('Rate against budget while parts of the system fail', where, scenarioPanels(saved))
      return { ...LAB, tables: [scenarios(saved)], plots: { 'lab-scenarios': svg } }
    }
    case 'ocean': {
      const svg = () => panelsSvg('Rate of three regions against their one budget', where, oceanPanels(saved))
      return { ...LAB, tables: [oceanScenarios(saved)], plots: { 'lab-ocean': svg } }
    }
    case 'soak':
      return { ...LAB, texts: { 'lab-soak': soakText(saved) }, plots: { 'lab-soak': () => overTimeSvg(soakOverTime(saved)) } }
    case 'ocean-soak':
      return { ...LAB, texts: { 'lab-ocean-soak': soakText(saved) } }
    case 'many-servers':
      return {
        pages: ['many-servers.md'],
        tables: [comparedWays(saved)],
        plots: { 'many-servers': () => overTimeSvg(waysOverTime(saved)) },
      }
  }
}

/** Each scenario of the cluster once. */
function scenarios({ results, ...setting }: SavedLab<ScenarioResult>): Table {
  return tableOf({ name: 'lab-figures', below: settingText(setting) }, results, {
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

/** Scenarios with three regions. */
function oceanScenarios({ results, ...setting }: SavedLab<OceanResult>): Table {
  return tableOf({ name: 'lab-ocean', below: settingText(setting) }, results, {
    scenario: ({ name }) => name.replace('ocean: ', ''),
    policy: ({ policy }) => policy,
    '50 / 99 %, ms': ({ p50Ms, p99Ms }) => `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(0)}`,
    'calls to the home, a second and region': ({ homeCalls }) => homeCalls.toFixed(1),
    'tokens over': ({ over }) => over.toFixed(0),
    'allowed over': ({ allowedOver }) => allowedOver.toFixed(0),
    'failed requests': ({ errors }) => String(errors),
  })
}

/** Ways to hold one limit on many servers. */
function comparedWays({ results, where }: SavedLab<Compared>): Table {
  return tableOf({ name: 'ways', below: `${where}.` }, results, {
    way: ({ way }) => way.title,
    'budget used': ({ useWhole }) => percent(useWhole),
    'with a dead node': ({ useDead }) => percent(useDead),
    'worst key over, tokens': ({ result }) => result.over.toFixed(1),
    '50 %, ms': ({ result }) => result.p50Ms.toFixed(1),
    '99 %, ms': ({ result }) => result.p99Ms.toFixed(1),
    'calls a request': ({ result }) => ((result.callsPerToken * result.allowed) / result.sent).toFixed(2),
    'failed requests': ({ result }) => String(result.errors),
  })
}

/** Scenarios in random order: what became of all of them. */
function soakText({ results, ...setting }: SavedLab<SoakResult>): string {
  const times = results.flatMap(({ recovery }) => recovery?.seconds ?? [])
  const recovered =
    times.length === 0
      ? ''
      : `; recovered after ${secondsText(summaryOf(times).median)} s (median), ${secondsText(Math.max(...times))} s at most`
  const worst = Math.max(...results.map(({ over, allowedOver }) => over - allowedOver))
  const most = Math.max(...results.map(({ over }) => over))
  const counts = `${sumOf(results, ({ sent }) => sent).toLocaleString('en')} requests, of which ${sumOf(results, ({ errors }) => errors)} failed`
  const violations = sumOf(results, (each) => each.violations.length)
  const over =
    worst <= 0 ? `At most ${most.toFixed(0)} tokens over, within what is allowed` : `Up to ${worst.toFixed(0)} tokens over what is allowed`
  return `${setting.minutes} minutes, ${results.length} scenarios, ${counts}, **${violations} violations**. ${over}${recovered}. ${settingText(setting)}`
}

/** The rate of each scenario, small, beside those of the others. */
function scenarioPanels({ results }: SavedLab<ScenarioResult>): Panel[] {
  return results.map(({ name, plot, marks }) => ({ title: name, xs: plot.xs, ys: plot.admitted, budget: plot.budget, marks }))
}

/** What each region admitted, and all of them together. */
function oceanPanels({ results }: SavedLab<OceanResult>): Panel[] {
  return results.map(({ name, plot, marks }) => {
    const ys = plot.xs.map((_, i) => sumOf(plot.byRegion, (each) => each[i] ?? 0))
    return { title: name, xs: plot.xs, ys, parts: plot.byRegion, budget: plot.budget, marks }
  })
}

function soakOverTime({ where, results }: SavedLab<SoakResult>): OverTime {
  return {
    title: 'Worst key of each scenario of the soak',
    subtitle: where,
    xName: 'minutes from the start',
    yName: 'tokens over the policy',
    xs: results.map(({ endedMinute }) => endedMinute),
    curves: [
      { name: 'over', ys: results.map(({ over }) => over) },
      { name: 'allowed: outages, failovers', ys: results.map(({ allowedOver }) => allowedOver), isDashed: true },
    ],
  }
}

function waysOverTime({ where, results }: SavedLab<Compared>): OverTime {
  const [first] = results
  const seconds = Math.floor(Math.min(...results.map(({ result }) => result.plot.xs.at(-1) ?? 0)))
  const xs = Array.from({ length: seconds }, (_, i) => i)
  const bySecond = ({ plot }: ScenarioResult): number[] =>
    xs.map((second) => {
      const within = plot.admitted.filter((_, i) => Math.floor(plot.xs[i] as number) === second)
      return sumOf(within, (each) => each) / Math.max(1, within.length)
    })
  return {
    title: 'Admitted requests per second under four ways of sharing a limit',
    subtitle: where,
    xName: 'seconds',
    yName: 'admitted per second',
    xs,
    curves: [
      ...results.map(({ way, result }) => ({ name: way.title, ys: bySecond(result) })),
      { name: 'budget', ys: xs.map(() => first?.result.plot.budget ?? 0), isDashed: true },
    ],
    marks: first?.result.marks.slice(0, 1) ?? [],
  }
}

function settingText({ where, seed, nodes, rate }: Saved): string {
  const load = nodes === undefined ? '' : `${nodes} nodes, ${rate} requests a second, `
  return `${where}; ${load}seed ${seed}.`
}

function secondsText(seconds: number | null): string {
  return seconds === null ? 'later' : seconds.toFixed(1)
}

function sumOf<Each>(values: readonly Each[], of: (each: Each) => number): number {
  return values.reduce((sum, each) => sum + of(each), 0)
}
