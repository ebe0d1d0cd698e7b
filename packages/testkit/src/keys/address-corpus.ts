import { readFileSync } from 'node:fs'
import type { AddressOptions } from '../../../sluicegate/dist/keys/address.js'

/** A request of the corpus, and whose it is. */
export interface CorpusRequest {
  readonly why: string
  readonly socket?: string
  readonly headers: Readonly<Record<string, string>>
  readonly options: AddressOptions
  /** Its key; none where there is none. */
  readonly client?: string
}

/** What is written by hand in `corpus/addresses.json`. */
export interface AddressCorpus {
  /** A text and the one text of its address. */
  readonly addresses: readonly (readonly [text: string, canonical: string])[]
  readonly noAddresses: readonly string[]
  /** Taken by ipaddr.js, and no addresses here. */
  readonly differencesFromIpaddr: readonly (readonly [text: string, why: string])[]
  /** What proxies write of a client, and the address in it; `-` is none. */
  readonly identifiers: readonly (readonly [text: string, canonical: string])[]
  readonly requests: readonly CorpusRequest[]
}

/** Read by tests, from where they are built. */
export function addressCorpus(): AddressCorpus {
  return JSON.parse(readFileSync(new URL('../../../sluicegate/corpus/addresses.json', import.meta.url), 'utf8')) as AddressCorpus
}
