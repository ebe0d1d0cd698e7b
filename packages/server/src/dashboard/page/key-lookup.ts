import { byId, count, made, span } from './figures.js'

/** The state of a key in one policy, as `/key` answers. */
interface PolicyState {
  readonly name: string
  readonly state?: {
    readonly allowed: boolean
    readonly limit: number
    readonly remaining: number
    readonly retryAfterMs: number | null
    readonly resetAfterMs: number | null
    readonly source: string
  }
  /** In a region: how it has its part of the budget. */
  readonly mode?: string
  readonly outage?: string
}

interface KeyAnswer {
  readonly policies: readonly PolicyState[]
  readonly policiesLeftOut: number
  /** The key of the client whose address was looked up, where it is another text: proxies' requests count by that. */
  readonly network?: string
}

/** A key looked up: its state in each policy, and on the page of the admin listener the verbs that change it. */
export class KeyLookup {
  readonly #input = byId('key') as HTMLInputElement
  readonly #panel = byId('key-panel')
  readonly #message = byId('key-message')
  #key: string | undefined
  /** The latest lookup: an answer to one before it is too late. */
  #turn = 0

  constructor() {
    byId('lookup').addEventListener('submit', (event) => {
      event.preventDefault()
      void this.open(this.#input.value)
    })
    byId('key-close').addEventListener('click', () => this.close())
    byId('key-reset').addEventListener('click', () => void this.#change('reset', {}, 'Reset'))
    byId('key-block').addEventListener('click', () => {
      const forMs = Number((byId('key-block-time') as HTMLSelectElement).value)
      void this.#change('block', { forMs }, forMs === 0 ? 'Block lifted' : `Blocked for ${span(forMs)}`)
    })
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape') this.close()
      else if (event.key === '/' && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event.target)) {
        event.preventDefault()
        this.#input.focus()
        this.#input.select()
      }
    })
  }

  set canChange(canChange: boolean) {
    byId('key-verbs').hidden = !canChange
  }

  async open(key: string): Promise<void> {
    if (key === '') return
    this.#input.value = key
    this.#key = key
    this.#panel.hidden = false
    byId('key-name').textContent = key
    this.#message.textContent = 'Looking up'
    await this.#show('')
  }

  /** Closes the panel; without one it leaves the field. */
  close(): void {
    this.#turn++
    if (this.#panel.hidden) {
      this.#input.blur()
      return
    }
    this.#panel.hidden = true
    this.#key = undefined
    this.#input.focus()
  }

  async #show(done: string): Promise<void> {
    const turn = ++this.#turn
    try {
      const { policies, policiesLeftOut, network } = (await post('/key', { key: this.#key })) as KeyAnswer
      if (turn !== this.#turn) return
      byId('key-states').replaceChildren(...policies.map(row))
      this.#fillChoice(policies.map(({ name }) => name))
      this.#message.textContent = done === '' && policiesLeftOut > 0 ? `${count(policiesLeftOut)} more policies are not shown` : done
      if (network !== undefined) this.#message.append(' ', this.#networkButton(network))
    } catch (error) {
      if (turn !== this.#turn) return
      byId('key-states').replaceChildren()
      this.#message.textContent = (error as Error).message
    }
  }

  #networkButton(network: string): HTMLElement {
    const button = made('button', '', 'Behind proxies this client is ', made('bdi', '', network))
    button.setAttribute('type', 'button')
    button.addEventListener('click', () => void this.open(network))
    return button
  }

  #fillChoice(names: readonly string[]): void {
    const choice = byId('key-policy') as HTMLSelectElement
    if (choice.options.length === names.length + 1 && names.every((name, i) => choice.options[i + 1]?.value === name)) return
    choice.replaceChildren(new Option('all policies', ''), ...names.map((name) => new Option(name, name)))
  }

  async #change(verb: 'reset' | 'block', parameters: object, done: string): Promise<void> {
    const key = this.#key
    if (key === undefined) return
    const choice = byId('key-policy') as HTMLSelectElement
    const names = choice.value === '' ? Array.from(choice.options, ({ value }) => value).slice(1) : [choice.value]
    try {
      for (const policy of names) await post(`/v1/${verb}`, { policy, key, ...parameters })
    } catch (error) {
      this.#message.textContent = (error as Error).message
      return
    }
    // Another key may have been looked up meanwhile.
    if (key === this.#key) await this.#show(`${done} in ${choice.value === '' ? 'all policies' : choice.value}`)
  }
}

function row({ name, state, outage, mode }: PolicyState): HTMLElement {
  if (state === undefined) return made('li', 'state', made('b', 'state-name', name), made('span', 'badge denied', `no answer: ${outage}`))
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, source } = state
  const meter = made('div', 'meter', made('i', allowed ? 'fill' : 'fill denied'))
  meter.style.setProperty('--share', `${limit === 0 ? 0 : Math.min(100, (100 * remaining) / limit)}%`)
  const wait = retryAfterMs === null ? 'never passes' : `for ${span(retryAfterMs)}`
  const reset = resetAfterMs === null || resetAfterMs === 0 ? '' : `full in ${span(resetAfterMs)}`
  return made(
    'li',
    'state',
    made('b', 'state-name', name),
    made('span', allowed ? 'badge allowed' : 'badge denied', allowed ? 'allowed' : `denied ${wait}`),
    meter,
    made(
      'span',
      'left',
      made('b', '', count(remaining)),
      ` of ${count(limit)} left${mode === undefined ? '' : (PLACES[source === 'outage' ? 'outage' : mode] ?? '')}`,
    ),
    made('span', 'quiet', reset),
  )
}

/** Where tokens of a budget are whose home is another store. */
const PLACES: Readonly<Record<string, string>> = {
  tokens: ' in this region and at the home',
  home: ' at the home',
  outage: ' of the share of this region',
}

/** @throws Error with what the service says, for people. */
async function post(path: string, body: object): Promise<unknown> {
  const response = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  const answer = await response.json()
  if (!response.ok) throw new Error(String((answer as { detail?: unknown }).detail ?? response.status))
  return answer
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLSelectElement
}
