import type { PartSample } from '../sample.js'
import { count } from './figures.js'

/** Fills a list with the parts of an all-of: the text of each, and the denials for which it was the binding part. */
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
