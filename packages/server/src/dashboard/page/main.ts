import type { History, Percentiles, RegionalPolicy, RegionSample, Sample, ServerSample } from '../sample.js'
import { showCandidate } from './candidate-card.js'
import { Chart, type Drawing } from './chart.js'
import { byId, count, made, rate, time } from './figures.js'
import { KeyLookup } from './key-lookup.js'
import { PolicyCard } from './policy-card.js'

/** Who holds what of budgets whose home is another store. */
function showRegion(region: RegionSample | undefined): void {
  byId('region').hidden = region === undefined
  if (region === undefined) return
  const { name, isHomeOut, policies } = region
  byId('region-name').textContent = name
  const home = byId('region-home')
  home.className = isHomeOut ? 'badge denied' : 'badge allowed'
  home.textContent = isHomeOut ? 'home out: the region goes on with its share' : 'home reachable'
  byId('region-policies').replaceChildren(...policies.map(row))
}

function row({ name, mode, why, isHomeOut, renewedPerSecond, charged, regions, share }: RegionalPolicy): HTMLElement {
  const owed = charged === 0 ? '' : `, ${count(charged)} charged afterwards`
  const part = `share ${rate(100 * share)}%`
  return made(
    'li',
    'state regional',
    made('b', 'state-name', name),
    made('span', isHomeOut ? 'badge denied' : 'badge allowed', isHomeOut ? `${mode}, home out` : mode),
    made('span', 'quiet', why ?? 'holds tokens ahead of need'),
    made('span', 'left', made('b', '', rate(renewedPerSecond)), ` tokens renewed a second${owed}`),
    made('span', 'quiet', regions === 0 ? part : `${count(regions)} ${regions === 1 ? 'region' : 'regions'}, ${part}`),
  )
}

const NAMES = ['p50', 'p90', 'p99', 'p999'] as const
const DRAWING: Drawing = {
  lines: [
    { label: 'p50', colour: 'p50' },
    { label: 'p90', colour: 'p90', dash: [8, 3] },
    { label: 'p99', colour: 'p99' },
    { label: 'p99.9', colour: 'p999', dash: [3, 3] },
  ],
  tick: time,
  isLog: true,
}

/** How long decisions took, as percentiles over the last two minutes. */
class LatencyCard {
  readonly #place = byId('latency-chart')
  readonly #chart = new Chart(this.#place, DRAWING)

  restart(atS: readonly number[], latency: readonly (Percentiles | null)[]): void {
    this.#chart.restart(
      atS,
      NAMES.map((name) => latency.map((each) => each?.[name] ?? null)),
    )
  }

  show(atS: number, latency: Percentiles | undefined): void {
    this.#chart.add(
      atS,
      NAMES.map((name) => latency?.[name] ?? null),
    )
    if (latency === undefined) return
    for (const name of NAMES) byId(`latency-${name}`).textContent = time(latency[name])
    this.#place.ariaLabel = `Last two minutes of the time of a decision: now ${time(latency.p50)} in the median, ${time(latency.p999)} at 99.9 percent`
  }
}

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
