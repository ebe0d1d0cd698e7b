import type { PolicySample } from '../sample.js'
import { Chart } from './chart.js'
import { count, rate } from './figures.js'
import { showParts } from './part-list.js'
import { showRanking } from './ranking.js'

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
    this.#chart ??= new Chart(this.#chartPlace)
    this.#chart.restart(atS, allowed, denied)
  }

  show(policy: PolicySample, atS: number): void {
    const { allowed, denied, impossible, keysTracked, description, parts, demand, denials } = policy
    const values = {
      'allowed-rate': rate(allowed.perSecond),
      'denied-rate': rate(denied.perSecond),
      'allowed-total': count(allowed.total),
      'denied-total': count(denied.total),
      'impossible-total': count(impossible.total),
      keys: count(keysTracked),
    }
    for (const [name, text] of Object.entries(values)) part(this.element, `[data-value="${name}"]`).textContent = text
    part(this.element, '.description').textContent = description
    showParts(part(this.element, '.parts'), parts)
    this.#chartPlace.ariaLabel = `Last two minutes of ${policy.name}: now ${values['allowed-rate']} allowed and ${values['denied-rate']} denied a second`
    this.#chart?.add(atS, allowed.perSecond, denied.perSecond)
    showRanking(part(this.element, '[data-ranking="demand"]'), demand, 'No requests yet')
    showRanking(part(this.element, '[data-ranking="denials"]'), denials, 'No denials')
  }
}

function part(within: ParentNode, selector: string): HTMLElement {
  const found = within.querySelector<HTMLElement>(selector)
  if (found === null) throw new Error(`the page has no ${selector}`)
  return found
}
