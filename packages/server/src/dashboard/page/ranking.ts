import type { RankedKey } from '../sample.js'
import { made } from './element.js'
import { count } from './figures.js'

/** Receives a key that is clicked. */
export type KeyChoice = (key: string) => void

/** The key of each row. */
const shown = new WeakMap<Element, string>()

/**
 * Fills a list with keys, the most frequent first, each over a bar of its share of the first. A key that was in the list keeps its row: a click may begin
 * before new figures and end after them.
 */
export function showRanking(list: HTMLElement, keys: readonly RankedKey[], whenEmpty: string, onKey?: KeyChoice): void {
  const before = new Map(Array.from(list.children, (row) => [shown.get(row), row as HTMLElement]))
  const rowOfKey = ({ key }: RankedKey): HTMLElement => {
    const row = before.get(key) ?? newRow(key, onKey)
    // Two long keys may be cut to the same text.
    before.delete(key)
    return row
  }
  const rows = keys.length === 0 ? [emptyRow(whenEmpty)] : keys.map(rowOfKey)
  const most = keys[0]?.count ?? 0
  for (const [i, { count: times }] of keys.entries()) setFigures(rows[i] as HTMLElement, times, most)
  const focused = list.contains(document.activeElement) ? (document.activeElement as HTMLElement) : undefined
  for (const row of [...list.children]) if (!rows.includes(row as HTMLElement)) row.remove()
  for (const [i, row] of rows.entries()) if (list.children[i] !== row) list.insertBefore(row, list.children[i] ?? null)
  // A row that moves loses the focus.
  if (focused !== document.activeElement) focused?.focus()
}

function newRow(key: string, onKey: KeyChoice | undefined): HTMLElement {
  const bar = document.createElement('i')
  bar.className = 'bar'
  // A key may be written from right to left; it must not turn its neighbours around.
  const name = document.createElement('bdi')
  name.textContent = key
  const figure = document.createElement('data')
  if (onKey === undefined || !isWhole(key)) return rowOf(key, bar, name, figure)
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'key'
  button.title = 'Look up this key'
  button.append(name)
  button.addEventListener('click', () => onKey(key))
  return rowOf(key, bar, button, figure)
}

function setFigures(row: HTMLElement, times: number, most: number): void {
  row.querySelector<HTMLElement>('.bar')?.style.setProperty('--share', `${(100 * times) / most}%`)
  const figure = row.querySelector('data')
  if (figure === null) return
  figure.value = String(times)
  figure.textContent = count(times)
}

function rowOf(key: string, ...content: Node[]): HTMLElement {
  const row = made('li', '', ...content)
  shown.set(row, key)
  return row
}

function emptyRow(text: string): HTMLElement {
  return made('li', 'none', text)
}

/** Whether a key is shown as it is: cut or escaped, another key would be looked up. */
function isWhole(key: string): boolean {
  return !key.endsWith('…') && !key.includes('\\u{')
}
