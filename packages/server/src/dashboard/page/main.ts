import type { Sample } from '../sample.js'
import { readFeed } from './feed.js'
import { count, rate } from './figures.js'
import { PolicyCard } from './policy-card.js'

const STATES = { live: 'Live', lost: 'Connection lost, trying again' }
const cards = new Map<string, PolicyCard>()

readFeed({
  history(history) {
    layOut(history.policies)
    for (const { name, allowed, denied } of history.policies) cards.get(name)?.restart(history.atS, allowed, denied)
  },
  sample(sample) {
    showTotals(sample)
    // A reload may have added policies and removed others.
    layOut(sample.policies)
    for (const policy of sample.policies) cards.get(policy.name)?.show(policy, sample.atS)
    byId('key-note').hidden = sample.keys !== 'masked'
    showStaleness(sample.staleSinceS)
  },
  state(state) {
    const status = byId('status')
    status.dataset.state = state
    status.textContent = STATES[state]
  },
})

/** One card per policy. Those that were there before keep theirs. */
function layOut(policies: readonly { readonly name: string }[]): void {
  const template = byId('policy') as HTMLTemplateElement
  const names = policies.map(({ name }) => name)
  if (names.length === cards.size && names.every((name) => cards.has(name))) return
  const before = new Map(cards)
  cards.clear()
  for (const name of names) cards.set(name, before.get(name) ?? new PolicyCard(name, template))
  byId('policies').replaceChildren(...Array.from(cards.values(), (card) => card.element))
}

function showStaleness(staleSinceS: number | undefined): void {
  const note = byId('stale')
  note.hidden = staleSinceS === undefined
  if (staleSinceS === undefined) return
  const since = new Date(staleSinceS * 1000).toLocaleString()
  note.textContent = `The configuration has faults since its last change. The one of ${since} is in force; see the log.`
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
