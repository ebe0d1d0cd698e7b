import type { Machine } from './machine.js'
import type { Effort } from './measure.js'
import type { Answer, Verdict } from './question.js'
import type { Summary } from './samples.js'

/** An answer as text for a terminal. */
export function answerText(answer: Answer): string {
  const { title, note, unit, verdicts } = answer
  const rows = answerRows(answer, `median ${unit}`)
  return [title, note, '', ...aligned(rows), ...(verdicts.length > 0 ? ['', ...aligned(verdicts.map(verdictCells))] : []), ''].join('\n')
}

/** Head and rows of an answer's table. */
export function answerRows({ measurements, comparison }: Answer, medianHead: string): [string[], ...string[][]] {
  const inTurns = measurements.some(({ ns, grossNs }) => ns.median !== grossNs.median)
  const head = ['', medianHead, 'quartiles', ...(inTurns ? ['gross'] : []), ...(comparison ? [comparison.head] : [])]
  const rows = measurements.map(({ subject, ns, grossNs }) => {
    const gross = ns.median === grossNs.median ? '' : figure(grossNs.median)
    const ratio = comparison?.ratios[subject]
    const compared = ratio === undefined ? '' : `${figure(ratio.median)} (${spread(ratio)})`
    const figures = [subject, figure(ns.median), spread(ns)]
    return [...figures, ...(inTurns ? [gross] : []), ...(comparison ? [compared] : [])]
  })
  return [head, ...rows]
}

/** All verdicts of a run as text for a terminal. */
export function verdictsText(verdicts: readonly Verdict[]): string {
  const met = verdicts.filter((verdict) => verdict.met).length
  return ['Targets', '', ...aligned(verdicts.map(verdictCells)), '', `${met} of ${verdicts.length} met`].join('\n')
}

/** Three significant digits, as far as that makes sense. */
export function figure(value: number): string {
  const size = Math.abs(value)
  return value.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : size >= 0.1 ? 2 : 3)
}

/** A whole number, with commas. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en')
}

export function spread({ lowerQuartile, upperQuartile }: Summary): string {
  return `${figure(lowerQuartile)}..${figure(upperQuartile)}`
}

function verdictCells({ what, target, measured, unit, met }: Verdict): string[] {
  return [met ? 'met   ' : 'MISSED', what, `target ${target}`, `${figure(measured.median)} ${unit}`, `(${spread(measured)})`]
}

/** The first column to the left, the others to the right where they hold figures. */
export function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  return rows.map((row) =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0, column))
      .join('  ')
      .trimEnd(),
  )
}

function pad(cell: string, width: number, column: number): string {
  return column === 0 || /[a-z]{3}/.test(cell) ? cell.padEnd(width) : cell.padStart(width)
}

/** What `--json` writes. */
export interface Results {
  readonly startedAt: string
  readonly machine: Machine
  /** The rivals' versions. */
  readonly rivals: Readonly<Record<string, string>>
  readonly effort: Effort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly answers: readonly (Answer & { readonly question: string })[]
}
