import type { HoldSample, PartSample, PolicySample, RankedKey } from '../sample.js'
import { Chart, type Drawing } from './chart.js'
import { amount, bytes, count, made, rate } from './figures.js'

const DECISIONS: Drawing = {
  lines: [
    { label: 'allowed', colour: 'allowed', fill: 'allowed-fill' },
    { label: 'denied', colour: 'denied', dash: [6, 4] },
  ],
  tick: amount,
}

/** One policy's part of the page. Names and keys are untrusted, so that every text is set as text, never as markup. */
export class PolicyCard {
  readonly element: HTMLElement
  readonly #chartPlace: HTMLElement
  #chart: Chart | undefined

  constructor(name: string, template: HTMLTemplateElement) {
    const copy = template.content.cloneNode(true) as DocumentFragment
    this.element = part(copy, 'section')
    part(this.element, 'h2').textContent = name
    this.#chartPlace = part(this.element, '.chart')
  }

  /** Restarts the chart with the history; the card must be on the page already, because the chart takes its width. */
  restart(atS: readonly number[], allowed: readonly number[], denied: readonly number[]): void {
    this.#chart ??= new Chart(this.#chartPlace, DECISIONS)
    this.#chart.restart(atS, [allowed, denied])
  }

  /** `onKey` receives a key that is clicked; undefined where keys are masked. */
  show(policy: PolicySample, atS: number, onKey: KeyChoice | undefined): void {
    const { allowed, denied, impossible, keysTracked, room, memoryBytes, description, holds, parts, demand, denials } = policy
    const values = {
      'allowed-rate': rate(allowed.perSecond),
      'denied-rate': rate(denied.perSecond),
      'allowed-total': count(allowed.total),
      'denied-total': count(denied.total),
      'impossible-total': count(impossible.total),
      keys: count(keysTracked),
    }
    for (const [name, text] of Object.entries(values)) part(this.element, `[data-value="${name}"]`).textContent = text
    const table = part(this.element, '.table')
    table.hidden = memoryBytes === 0
    const share = room === undefined ? '' : `${share100(keysTracked / room)} of room for ${amount(room)} keys, `
    part(table, '.table-text').textContent = `Table: ${share}${bytes(memoryBytes)}`
    part(table, '.fill').style.setProperty('--share', `${room === undefined ? 0 : Math.min(100, (100 * keysTracked) / room)}%`)
    const held = part(this.element, '.holds')
    held.hidden = holds === undefined
    if (holds !== undefined) held.textContent = holdText(holds)
    part(this.element, '.description').textContent = description
    showParts(part(this.element, '.parts'), parts)
    this.#chartPlace.ariaLabel = `Last two minutes of ${policy.name}: now ${values['allowed-rate']} allowed and ${values['denied-rate']} denied a second`
    this.#chart?.add(atS, [allowed.perSecond, denied.perSecond])
    showRanking(part(this.element, '[data-ranking="demand"]'), demand, 'No requests yet', onKey)
    showRanking(part(this.element, '[data-ranking="denials"]'), denials, 'No denials', onKey)
  }
}

function holdText({ open, held, spent, over, lapsed, cut }: HoldSample): string {
  const now = `Holds: ${count(open)} open, ${amount(held)} tokens held`
  return `${now}; ${amount(spent)} spent, ${amount(over)} of them over, ${count(lapsed)} lapsed, ${count(cut)} cut`
}

function share100(share: number): string {
  return share > 0 && share < 0.001 ? 'under 0.1%' : `${rate(100 * share)}%`
}

function part(within: ParentNode, selector: string): HTMLElement {
  const found = within.querySelector<HTMLElement>(selector)
  if (found === null) throw new Error(`the page has no ${selector}`)
  return found
}

/** Fills a list with the parts of an all-of: the text of each, and the denials for which it was the binding part. */
function showParts(list: HTMLElement, parts: readonly PartSample[]): void {
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

/** Receives a key that is clicked. */
type KeyChoice = (key: string) => void

/** The key of each row. */
const shown = new WeakMap<Element, string>()

/**
 * Fills a list with keys, the most frequent first, each over a bar of its share of the first. A key that was in the list keeps its row: a click may begin
 * before new figures and end after them.
 */
function showRanking(list: HTMLElement, keys: readonly RankedKey[], whenEmpty: string, onKey?: KeyChoice): void {
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
