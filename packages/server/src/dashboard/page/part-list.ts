import type { PartSample } from '../sample.js'
import { count } from './figures.js'

/** Fills a list with the policies that are charged together: what each says, and how many denials answered for it. */
export function showParts(list: HTMLElement, parts: readonly PartSample[]): void {
  list.replaceChildren(...parts.map(row))
}

function row({ name, description, denied }: PartSample): HTMLElement {
  const item = document.createElement('li')
  const title = document.createElement('b')
  title.textContent = name
  const text = document.createElement('span')
  text.textContent = description
  const figure = document.createElement('data')
  figure.value = String(denied)
  figure.textContent = `${count(denied)} denied`
  item.append(title, text, figure)
  return item
}
