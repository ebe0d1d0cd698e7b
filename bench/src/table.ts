import { type Cell, inColumns, markdownTable } from 'sluicegate-testkit/markdown-tables.js'
import type { Summary } from 'sluicegate-testkit/samples.js'

/** A table of a report, under the name of its place in a page. */
export interface Table {
  readonly name: string
  readonly title?: string
  /** Behind the title: what the reader must know of the figures. */
  readonly note?: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
  /** What is said below it. */
  readonly below?: string
  /** What stands in the terminal alone: columns, by their heads, and rows. */
  readonly offPage?: { readonly columns: readonly string[]; readonly rows?: (row: readonly string[]) => boolean }
}

type About = Omit<Table, 'head' | 'rows'>

/** A table of things that are alike: the head of each column, and its cell of a row. */
export function tableOf<Row>(about: About, rows: readonly Row[], columns: Readonly<Record<string, (row: Row) => Cell>>): Table {
  return { ...about, ...inColumns(rows, columns) }
}

/** As text for a terminal. */
export function tableText({ name, title = name, note, head, rows, below }: Table): string {
  return [title, ...(note ? [note] : []), '', ...aligned([head, ...rows]), ...(below ? ['', below] : []), ''].join('\n')
}

/** As part of a page; figures to the right. A unit that all figures of a column have stands in its head. */
export function tableMarkdown(whole: Table): string {
  const { title, note, head, rows, below } = onPage(whole)
  const units = head.map((name, column) => (name === '' || column === 0 ? undefined : unitOf(rows.map((row) => row[column] ?? ''))))
  const names = head.map((name, column) => (units[column] === undefined ? name : `${name}, ${units[column]}`))
  const cells = rows.map((row) => row.map((cell, column) => (units[column] === undefined ? cell : cell.replace(` ${units[column]}`, ''))))
  const above = title === undefined ? [] : [note === undefined ? `**${title}**` : `**${title}.** ${note}`]
  return [...above, markdownTable(names, cells, true), ...(below ? [below] : [])].join('\n\n')
}

function onPage(whole: Table): Table {
  const { head, rows, offPage } = whole
  if (offPage === undefined) return whole
  const left = head.flatMap((name, column) => (offPage.columns.includes(name) ? [] : [column]))
  const cells = (row: readonly string[]): string[] => left.map((column) => row[column] ?? '')
  return { ...whole, head: cells(head), rows: rows.filter((row) => !offPage.rows?.(row)).map(cells) }
}

function unitOf(cells: readonly string[]): string | undefined {
  const units = new Set(cells.filter((cell) => cell !== '' && cell !== '0').map((cell) => /^-?[\d.,]+ (%|×|ns|µs|ms|MB)$/.exec(cell)?.[1]))
  return units.size === 1 ? [...units][0] : undefined
}

/** The first column to the left, the others to the right where they hold figures. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? []
  const pad = (cell: string, column: number): string =>
    column === 0 || /[a-z]{3}/.test(cell) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return rows.map((row) => row.map(pad).join('  ').trimEnd())
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

/** The median, and the quartiles beside it. */
export function withSpread(summary: Summary, text: (value: number) => string = figure): readonly [string, string] {
  return [text(summary.median), spread(summary, text)]
}

export function spread({ lowerQuartile, upperQuartile }: Summary, text: (value: number) => string = figure): string {
  return `${text(lowerQuartile)}..${text(upperQuartile)}`
}

/** A part of the whole. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}

/** The minute of a time in ISO 8601, as tables write it. */
export function minuteOf(time: string): string {
  return `${time.slice(0, 16).replace('T', ' ')} UTC`
}
