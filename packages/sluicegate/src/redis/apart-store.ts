import type { Store, StoreAnswer, StoreLease, StoreRequest, StoreVerb } from './store.js'
import type { StoreForm } from './store-form.js'

/** Verbs that mean something to each policy by itself. */
const EACH_BY_ITSELF: ReadonlySet<StoreVerb> = new Set(['peek', 'refund', 'penalize', 'block', 'reset'])

/** A store that is asked once for each slot, where several are asked about and nothing has to be decided together. */
export class ApartStore implements Store {
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /** Whether one call can change them all. */
  isTogether(keys: readonly string[]): boolean {
    const slot = this.slotOf(keys[0] as string)
    return keys.every((key) => this.slotOf(key) === slot)
  }

  async ask(verb: StoreVerb, requests: readonly StoreRequest[]): Promise<StoreAnswer> {
    if (!EACH_BY_ITSELF.has(verb) || this.isTogether(requests.map(({ key }) => key))) return this.store.ask(verb, requests)
    const answers = await Promise.all(requests.map((request) => this.store.ask(verb, [request])))
    return { standings: answers.flatMap(({ standings }) => standings) }
  }

  lease(form: StoreForm, key: string, want: number, horizonUs: number, least: number): Promise<StoreLease> {
    return this.store.lease(form, key, want, horizonUs, least)
  }

  serverOf(key: string): string | undefined {
    return this.store.serverOf(key)
  }

  slotOf(key: string): number | undefined {
    return this.store.slotOf(key)
  }
}
