import { markdownTable } from 'sluicegate-testkit/markdown-tables.js'

/** A table with its columns side by side: the head of each, and its cell of a row. */
export function columnTable<Row>(rows: readonly Row[], columns: Readonly<Record<string, (row: Row) => string>>): string {
  const cells = Object.values(columns)
  return markdownTable(
    Object.keys(columns),
    rows.map((row) => cells.map((cell) => cell(row))),
  )
}
