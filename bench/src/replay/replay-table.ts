import { figure, whole } from '../report.js'
import { ratios, type Summary, summaryOf } from '../samples.js'
import type { Table } from '../tables.js'
import type { ReplayResults } from './replay-results.js'

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
