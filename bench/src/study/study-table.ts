import { table } from '../markdown.js'
import { aligned } from '../report.js'

/** A table of a study's report, under the name of its place in the page. */
export interface StudyTable {
  readonly name: string
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** Rows with their columns side by side: the head of each, and its cell of a row. */
export function inColumns<Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => string>>,
): Pick<StudyTable, 'head' | 'rows'> {
  return { head: Object.keys(columns), rows: rows.map((row) => Object.values(columns).map((cell) => cell(row))) }
}

export function tableText({ title, head, rows }: StudyTable): string {
  return [title, '', ...aligned([head, ...rows]), ''].join('\n')
}

export function tableMarkdown({ title, head, rows }: StudyTable): string {
  return [`**${title}**`, '', table(head, rows)].join('\n')
}

/** A share as a percentage of three significant digits. */
export function percent(part: number, whole: number): string {
  if (part === 0) return '0'
  const value = (part / whole) * 100
  return `${value.toFixed(Math.min(4, Math.max(0, 2 - Math.floor(Math.log10(value)))))} %`
}
