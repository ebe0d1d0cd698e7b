import { filledPage } from 'sluicegate-testkit/markdown-tables.js'
import { columnTable } from './lab-report.js'
import { linePlotSvg } from './line-plot.js'
import type { ScenarioResult } from './run-scenario.js'
import type { NodeSettings } from './service-node.js'

/** A way to hold one limit on many servers. */
export interface Way {
  readonly name: string
  readonly title: string
  /** By node: of the whole policy. */
  readonly share: number
  readonly isShared: boolean
  readonly mode: NodeSettings['mode']
  /** Whether the load balancer sends a key always to the same node. */
  readonly isAffine: boolean
}

/** What one way measured. */
export interface Compared {
  readonly way: Way
  readonly result: ScenarioResult
  readonly useWhole: number
  readonly useDead: number
}

/** All ways, where and when they were measured. */
export interface SavedComparison {
  readonly where: string
  readonly found: readonly Compared[]
}

/** docs/many-servers.md with its table made anew. */
export function filledComparison(page: string, { where, found }: SavedComparison): string {
  return filledPage(page, 'compared', new Map([['ways', `${comparisonTable(found)}\n\n${where}.`]]))
}

export function comparisonTable(found: readonly Compared[]): string {
  const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
  return columnTable(found, {
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

/** The plot of the page. */
export function comparisonPlot({ where, found }: SavedComparison): string {
  const [first] = found
  const seconds = Math.floor(Math.min(...found.map(({ result }) => result.plot.xs.at(-1) ?? 0)))
  const xs = Array.from({ length: seconds }, (_, i) => i)
  const bySecond = ({ plot }: ScenarioResult): number[] =>
    xs.map((second) => {
      const within = plot.admitted.filter((_, i) => Math.floor(plot.xs[i] as number) === second)
      return within.reduce((sum, each) => sum + each, 0) / Math.max(1, within.length)
    })
  const mark = first?.result.marks[0]
  return linePlotSvg({
    title: 'Admitted requests per second under four ways of sharing a limit',
    subtitle: where,
    xName: 'seconds',
    yName: 'admitted per second',
    xs,
    curves: [
      ...found.map(({ way, result }) => ({ name: way.title, ys: bySecond(result) })),
      { name: 'budget', ys: xs.map(() => first?.result.plot.budget ?? 0), isDashed: true },
    ],
    ...(mark && { mark }),
  })
}
