import type { History, Sample } from '../sample.js'
import { readFeed } from './feed.js'
import { count, rate } from './figures.js'
import { PolicyCard } from './policy-card.js'

const STATES = { live: 'Live', lost: 'Connection lost, trying again' }
const cards = new Map<string, PolicyCard>()

readFeed({
  history(history) {
    layOut(history)
    for (const { name, allowed, denied } of history.policies) cards.get(name)?.restart(history.atS, allowed, denied)
  },
  sample(sample) {
    showTotals(sample)
    for (const policy of sample.policies) cards.get(policy.name)?.show(policy, sample.atS)
    byId('key-note').hidden = sample.keys !== 'masked'
  },
  state(state) {
    const status = byId('status')
    status.dataset.state = state
    status.textContent = STATES[state]
  },
})

/** One card per policy; created anew, since a restarted service may have other policies. */
function layOut(history: History): void {
  const template = byId('policy') as HTMLTemplateElement
  const names = history.policies.map(({ name }) => name)
  if (names.length === cards.size && names.every((name) => cards.has(name))) return
  cards.clear()
  for (const name of names) cards.set(name, new PolicyCard(name, template))
  byId('policies').replaceChildren(...Array.from(cards.values(), (card) => card.element))
}

function showTotals({ policies }: Sample): void {
  const sum = (of: (policy: Sample['policies'][number]) => number): number => policies.reduce((total, policy) => total + of(policy), 0)
  byId('total-allowed').textContent = rate(sum(({ allowed }) => allowed.perSecond))
  byId('total-denied').textContent = rate(sum(({ denied }) => denied.perSecond))
  byId('total-keys').textContent = count(sum(({ keysTracked }) => keysTracked))
}

function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`the page has no #${id}`)
  return element
}
