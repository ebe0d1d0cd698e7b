import type { Measurement } from './measure.js'
import type { Answer, Ratio, Verdict } from './question.js'
import type { Summary } from './samples.js'

/** An answer as text for a terminal. */
export function answerText({ title, note, unit, measurements, verdicts, ratios = [] }: Answer): string {
  const inTurns = measurements.some(({ ns, grossNs }) => ns.median !== grossNs.median)
  const head = ['', `median ${unit}`, 'quartiles', 'min .. max', ...(inTurns ? ['gross'] : [])]
  const rows = measurements.map((measurement) => measurementCells(measurement, inTurns))
  return [
    title,
    note,
    '',
    ...aligned([head, ...rows]),
    ...(ratios.length > 0 ? ['', ...aligned(ratios.map(ratioCells))] : []),
    ...(verdicts.length > 0 ? ['', ...aligned(verdicts.map(verdictCells))] : []),
    '',
  ].join('\n')
}

/** All verdicts of a run as text for a terminal. */
export function verdictsText(verdicts: readonly Verdict[]): string {
  const met = verdicts.filter((verdict) => verdict.met).length
  return ['Targets', '', ...aligned(verdicts.map(verdictCells)), '', `${met} of ${verdicts.length} met`].join('\n')
}

/** Three significant digits, as far as that makes sense. */
export function figure(value: number): string {
  const size = Math.abs(value)
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)
}

export function spread({ lowerQuartile, upperQuartile }: Summary): string {
  return `${figure(lowerQuartile)} .. ${figure(upperQuartile)}`
}

function measurementCells({ subject, ns, grossNs }: Measurement, inTurns: boolean): string[] {
  const gross = ns.median === grossNs.median ? '' : figure(grossNs.median)
  return [subject, figure(ns.median), spread(ns), `${figure(ns.min)} .. ${figure(ns.max)}`, ...(inTurns ? [gross] : [])]
}

/** What, its median and its quartiles. */
export function ratioCells({ what, measured }: Ratio): string[] {
  return [what, `${figure(measured.median)} ×`, spread(measured)]
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
