import type { Table } from '../markdown.js'
import { figure, whole } from '../report.js'
import { ratios, type Summary, summaryOf } from '../samples.js'

/** Rounds of one log, read by `wc -l` and by `sluicegate replay` in turn. */
export interface ReplayFigure {
  readonly log: string
  readonly megabytes: number
  readonly linesPerSecond: readonly number[]
  readonly wcLinesPerSecond: readonly number[]
  /** The most memory that the command held. */
  readonly peakMegabytes: number
}

/** What `npm run bench:replay` found. */
export interface ReplayResults {
  readonly kind: 'replay'
  readonly where: string
  readonly lines: number
  readonly figures: readonly ReplayFigure[]
}

/** The table of docs/replay.md. */
export function replayTable({ figures, lines, where }: ReplayResults): Table {
  return {
    name: 'replay-speed',
    title: `${lines.toLocaleString('en')} lines of each log. ${where}`,
    head: ['log', 'MB', 'lines/s', 'quartiles', '`wc -l`, lines/s', 'of `wc -l`', 'quartiles', 'most memory, MB'],
    rows: figures.map(({ log, megabytes, linesPerSecond, wcLinesPerSecond, peakMegabytes }) => {
      const [ours, theirs] = [summaryOf(linesPerSecond), summaryOf(wcLinesPerSecond)]
      const share = summaryOf(ratios(linesPerSecond, wcLinesPerSecond))
      return [
        log,
        megabytes.toFixed(0),
        whole(ours.median),
        quartiles(ours, whole),
        whole(theirs.median),
        figure(share.median),
        quartiles(share, figure),
        peakMegabytes.toFixed(0),
      ]
    }),
  }
}

function quartiles({ lowerQuartile, upperQuartile }: Summary, text: (value: number) => string): string {
  return `${text(lowerQuartile)} .. ${text(upperQuartile)}`
}
