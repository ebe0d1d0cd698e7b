import type { History, Sample, ServerSample } from '../sample.js'
import { showCandidate } from './candidate-card.js'
import { byId, made } from './element.js'
import { count, rate } from './figures.js'
import { KeyLookup } from './key-lookup.js'
import { LatencyCard } from './latency-card.js'
import { PolicyCard } from './policy-card.js'
import { showRegion } from './region-card.js'

const STATES = { live: 'Live', lost: 'Connection lost, trying again' }
const cards = new Map<string, PolicyCard>()
const latency = new LatencyCard()
const lookup = new KeyLookup()
const openKey = (key: string): void => void lookup.open(key)

readFeed({
  history(history) {
    layOut(history.policies)
    latency.restart(history.atS, history.latency)
    for (const { name, allowed, denied } of history.policies) cards.get(name)?.restart(history.atS, allowed, denied)
  },
  sample(sample) {
    showTotals(sample)
    latency.show(sample.atS, sample.latency)
    // A reload may have added policies and removed others.
    layOut(sample.policies)
    const onKey = sample.keys === 'shown' ? openKey : undefined
    for (const policy of sample.policies) cards.get(policy.name)?.show(policy, sample.atS, onKey)
    byId('key-note').hidden = sample.keys !== 'masked'
    lookup.canChange = sample.canChange
    showStaleness(sample)
    showRegion(sample.region)
    showCandidate(sample.candidate)
    showServers(sample.servers)
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

function showStaleness({ staleSinceS, faults }: Sample): void {
  const note = byId('stale')
  note.hidden = staleSinceS === undefined
  if (staleSinceS === undefined) return
  const since = new Date(staleSinceS * 1000).toLocaleString()
  const text = `The configuration has faults since its last change. The one of ${since} is in force; see the log.`
  // An alert is read aloud whenever its text is set.
  if (byId('stale-text').textContent !== text) byId('stale-text').textContent = text
  const list = byId('stale-faults')
  list.hidden = faults === undefined
  if (list.textContent !== (faults ?? '')) list.textContent = faults ?? ''
}

function showServers(servers: readonly ServerSample[] | undefined): void {
  byId('servers').hidden = servers === undefined
  const total = servers?.reduce((sum, { calls }) => sum + calls, 0) ?? 0
  byId('server-list').replaceChildren(
    ...(servers ?? []).map(({ name, calls }) => {
      const fill = made('i', 'fill')
      const meter = made('div', 'meter', fill)
      meter.style.setProperty('--share', `${total === 0 ? 0 : (100 * calls) / total}%`)
      return made(
        'li',
        'state',
        made('b', 'state-name', name === '' ? 'one server' : name),
        meter,
        made('span', 'left', `${count(calls)} calls`),
      )
    }),
  )
}

function showTotals({ policies }: Sample): void {
  const sum = (of: (policy: Sample['policies'][number]) => number): number => policies.reduce((total, policy) => total + of(policy), 0)
  byId('total-allowed').textContent = rate(sum(({ allowed }) => allowed.perSecond))
  byId('total-denied').textContent = rate(sum(({ denied }) => denied.perSecond))
  byId('total-keys').textContent = count(sum(({ keysTracked }) => keysTracked))
}

/** The page's handlers of events. */
interface FeedReader {
  history(history: History): void
  sample(sample: Sample): void
  state(state: 'live' | 'lost'): void
}

const RETRY_MS = 5_000

/** Reads the service's events for as long as the page is open. */
function readFeed(reader: FeedReader): void {
  const source = new EventSource('/events')
  source.addEventListener('history', (event) => {
    reader.history(JSON.parse(event.data))
    reader.state('live')
  })
  source.addEventListener('message', (event) => reader.sample(JSON.parse(event.data)))
  source.addEventListener('error', () => {
    reader.state('lost')
    // The browser reconnects by itself after a lost connection, not after a refusal.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => readFeed(reader), RETRY_MS)
  })
}
