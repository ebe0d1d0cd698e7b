import type { RankedKey } from '../sample.js'
import { count } from './figures.js'

/** Receives a key that is clicked. */
export type KeyChoice = (key: string) => void

/** Fills a list with keys, the most frequent first, each over a bar of its share of the first. */
export function showRanking(list: HTMLElement, keys: readonly RankedKey[], whenEmpty: string, onKey?: KeyChoice): void {
  const most = keys[0]?.count ?? 0
  // A focused key keeps its focus while the figures change.
  const focused = list.contains(document.activeElement) ? document.activeElement?.textContent : undefined
  list.replaceChildren(...(keys.length === 0 ? [emptyRow(whenEmpty)] : keys.map((key) => row(key, most, onKey))))
  if (focused === undefined) return
  for (const button of list.querySelectorAll<HTMLButtonElement>('button.key')) if (button.textContent === focused) button.focus()
}

function row({ key, count: times }: RankedKey, most: number, onKey: KeyChoice | undefined): HTMLElement {
  const bar = document.createElement('i')
  bar.className = 'bar'
  bar.style.setProperty('--share', `${(100 * times) / most}%`)
  // A key may be written from right to left; it must not turn its neighbours around.
  const name = document.createElement('bdi')
  name.textContent = key
  const figure = document.createElement('data')
  figure.value = String(times)
  figure.textContent = count(times)
  if (onKey === undefined || !isWhole(key)) return item('', bar, name, figure)
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'key'
  button.title = 'Look up this key'
  button.append(name)
  button.addEventListener('click', () => onKey(key))
  return item('', bar, button, figure)
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

/** Whether a key is shown as it is: cut or escaped, another key would be looked up. */
function isWhole(key: string): boolean {
  return !key.endsWith('…') && !key.includes('\\u{')
}
