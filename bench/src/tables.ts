import { table } from './markdown.js'
import { aligned } from './report.js'

/** A table of a report, under the name of its place in the page. */
export interface Table {
  readonly name: string
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

/** Rows with their columns side by side: the head of each, and its cell of a row. */
export function inColumns<Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => string>>,
): Pick<Table, 'head' | 'rows'> {
  return { head: Object.keys(columns), rows: rows.map((row) => Object.values(columns).map((cell) => cell(row))) }
}

export function tableText({ title, head, rows }: Table): string {
  return [title, '', ...aligned([head, ...rows]), ''].join('\n')
}

export function tableMarkdown({ title, head, rows }: Table): string {
  return [`**${title}**`, '', table(head, rows)].join('\n')
}
