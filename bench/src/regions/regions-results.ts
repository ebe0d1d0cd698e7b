import type { Table } from '../markdown.js'
import { figure, spread } from '../report.js'
import { ratios, summaryOf } from '../samples.js'

/** Processor time of a warm take, in microseconds: one sample a round, of both ways in turn. */
export interface WarmFigure {
  readonly keys: number
  readonly withoutHome: readonly number[]
  readonly withHome: readonly number[]
  /** Calls to the region's store and to the home for 1,000 takes, in the same rounds. */
  readonly calls: { readonly withoutHome: readonly number[]; readonly withHome: readonly number[] }
}

/** What `npm run bench:regions` found. */
export interface RegionsResults {
  readonly kind: 'regions'
  readonly where: string
  readonly takesPerSecond: number
  readonly figures: readonly WarmFigure[]
}

/** The table of docs/regions.md. */
export function warmTable({ figures, takesPerSecond, where }: RegionsResults): Table {
  return {
    name: 'regions-warm',
    title: `Processor time of the whole process for a warm take, leased, ${takesPerSecond.toLocaleString('en')} takes a second, ${figures[0]?.withHome.length} rounds in turn. ${where}`,
    head: ['keys', 'one store, µs', 'with a home, µs', 'with / without', 'quartiles', 'calls for 1,000 takes', 'with a home'],
    rows: figures.map(({ keys, withoutHome, withHome, calls }) => {
      const share = summaryOf(ratios(withHome, withoutHome))
      return [
        keys.toLocaleString('en'),
        figure(summaryOf(withoutHome).median),
        figure(summaryOf(withHome).median),
        figure(share.median),
        spread(share),
        figure(summaryOf(calls.withoutHome).median),
        figure(summaryOf(calls.withHome).median),
      ]
    }),
  }
}
