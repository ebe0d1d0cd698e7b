import type { RankedKey } from '../sample.js'
import { count } from './figures.js'

/** Fills a list with keys, the most frequent first, each over a bar of its share of the first. */
export function showRanking(list: HTMLElement, keys: readonly RankedKey[], whenEmpty: string): void {
  const most = keys[0]?.count ?? 0
  list.replaceChildren(...(keys.length === 0 ? [emptyRow(whenEmpty)] : keys.map((key) => row(key, most))))
}

function row({ key, count: times }: RankedKey, most: number): HTMLElement {
  const bar = document.createElement('i')
  bar.className = 'bar'
  bar.style.setProperty('--share', `${(100 * times) / most}%`)
  // A key may be written from right to left; it must not turn its neighbours around.
  const name = document.createElement('bdi')
  name.textContent = key
  const figure = document.createElement('data')
  figure.value = String(times)
  figure.textContent = count(times)
  return item('', bar, name, figure)
}

function emptyRow(text: string): HTMLElement {
  return item('none', text)
}

function item(className: string, ...content: (Node | string)[]): HTMLElement {
  const element = document.createElement('li')
  element.className = className
  element.append(...content)
  return element
}
