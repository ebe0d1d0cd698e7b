import { inColumns } from 'sluicegate-testkit/markdown-tables.js'
import type { Compared, OceanResult, Saved, SavedLab, ScenarioResult, SoakResult } from '../../../lab/dist/saved-runs.js'
import type { OverTime, Panel } from '../chart.js'
import { table } from '../markdown.js'
import { summaryOf } from '../samples.js'

/** Each scenario of the cluster once. */
export function labFigures({ results, ...setting }: SavedLab<ScenarioResult>): string {
  const { head, rows } = inColumns(results, {
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
  return `${table(head, rows)}\n\n${settingText(setting)}`
}

/** Scenarios in random order: what became of all of them. */
export function labSoak({ results, ...setting }: SavedLab<SoakResult>): string {
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

/** Scenarios with three regions. */
export function oceanFigures({ results, ...setting }: SavedLab<OceanResult>): string {
  const { head, rows } = inColumns(results, {
    scenario: ({ name }) => name.replace('ocean: ', ''),
    policy: ({ policy }) => policy,
    '50 / 99 %, ms': ({ p50Ms, p99Ms }) => `${p50Ms.toFixed(1)} / ${p99Ms.toFixed(0)}`,
    'calls to the home, a second and region': ({ homeCalls }) => homeCalls.toFixed(1),
    'tokens over': ({ over }) => over.toFixed(0),
    'allowed over': ({ allowedOver }) => allowedOver.toFixed(0),
    'failed requests': ({ errors }) => String(errors),
  })
  return `${table(head, rows)}\n\n${settingText(setting)}`
}

/** Ways to hold one limit on many servers. */
export function comparedWays({ results, where }: SavedLab<Compared>): string {
  const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
  const { head, rows } = inColumns(results, {
    way: ({ way }) => way.title,
    'budget used': ({ useWhole }) => percent(useWhole),
    'with a dead node': ({ useDead }) => percent(useDead),
    'worst key over, tokens': ({ result }) => result.over.toFixed(1),
    '50 %, ms': ({ result }) => result.p50Ms.toFixed(1),
    '99 %, ms': ({ result }) => result.p99Ms.toFixed(1),
    'calls a request': ({ result }) => ((result.callsPerToken * result.allowed) / result.sent).toFixed(2),
    'failed requests': ({ result }) => String(result.errors),
  })
  return `${table(head, rows)}\n\n${where}.`
}

/** The rate of each scenario, small, beside those of the others. */
export function scenarioPanels({ results }: SavedLab<ScenarioResult>): Panel[] {
  return results.map(({ name, plot, marks }) => ({ title: name, xs: plot.xs, ys: plot.admitted, budget: plot.budget, marks }))
}

/** What each region admitted, and all of them together. */
export function oceanPanels({ results }: SavedLab<OceanResult>): Panel[] {
  return results.map(({ name, plot, marks }) => {
    const ys = plot.xs.map((_, i) => sumOf(plot.byRegion, (each) => each[i] ?? 0))
    return { title: name, xs: plot.xs, ys, parts: plot.byRegion, budget: plot.budget, marks }
  })
}

export function soakOverTime({ where, results }: SavedLab<SoakResult>): OverTime {
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

export function waysOverTime({ where, results }: SavedLab<Compared>): OverTime {
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
