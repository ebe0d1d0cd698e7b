type Cells = readonly string[]

/** A table in Markdown. `isFigures`: all columns but the first are figures, and stand to the right. */
export function markdownTable(head: Cells, rows: readonly Cells[], isFigures = false): string {
  const line = (cells: Cells): string => `| ${cells.join(' | ')} |`
  const rule = `|${head.map((_, column) => (isFigures && column > 0 ? '---:' : '---')).join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

/** A cell, or the two of a column with its spread beside it. */
export type Cell = string | readonly [median: string, quartiles: string]

/** Rows with their columns side by side: the head of each, and its cell of a row. Cells of two get a second head, `quartiles`. */
export function inColumns<Row>(
  rows: readonly Row[],
  columns: Readonly<Record<string, (row: Row) => Cell>>,
): { head: Cells; rows: Cells[] } {
  const cells = rows.map((row) => Object.values(columns).map((cell) => cell(row)))
  const head = Object.keys(columns).flatMap((name, i) => (Array.isArray(cells[0]?.[i]) ? [name, 'quartiles'] : [name]))
  return { head, rows: cells.map((row) => row.flat()) }
}

/**
 * A page with each of the parts in its place, `<!-- MARK:NAME -->` to `<!-- /MARK -->`; after `MARK-inline:` it stands within its line.
 *
 * @throws {Error} when a part has no place, unless they `mayLack` one.
 */
export function filledPage(page: string, mark: string, parts: ReadonlyMap<string, string>, mayLack = false): string {
  const places = new RegExp(`(<!-- ${mark}(-inline)?:([\\w-]+) -->)[\\s\\S]*?(<!-- /${mark} -->)`, 'g')
  const left = new Set(parts.keys())
  const filled = page.replace(places, (place, open: string, inline: string | undefined, name: string, close: string) => {
    const part = parts.get(name)
    left.delete(name)
    if (part === undefined) return place
    return inline === undefined ? `${open}\n\n${part}\n\n${close}` : `${open}${part}${close}`
  })
  if (left.size > 0 && !mayLack) throw new Error(`the page has no place <!-- ${mark}:NAME --> for ${[...left].join(', ')}`)
  return filled
}

/** Results as JSON with a line for each field, and for each item of a list of objects, so that a change reads well in a diff. */
export function oneEachLine(fields: object): string {
  const lines = Object.entries(fields).map(([name, value]) => {
    const isList = Array.isArray(value) && value.some((each) => typeof each === 'object')
    const text = isList ? `[\n${value.map((item) => `  ${JSON.stringify(item)}`).join(',\n')}\n ]` : JSON.stringify(value)
    return ` ${JSON.stringify(name)}: ${text}`
  })
  return `{\n${lines.join(',\n')}\n}\n`
}
