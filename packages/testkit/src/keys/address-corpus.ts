import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type BareItem, type Parameters, parseList } from 'structured-headers'
import type { HeaderPair } from '../../../sluicegate/dist/headers/header.js'
import type { AddressOptions } from '../../../sluicegate/dist/keys/address.js'
import type { RequestFacts } from '../../../sluicegate/dist/keys/key-reader.js'

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

/** Facts as an adapter makes them, of a GET where nothing else is said. */
export function factsOf(
  facts: Partial<Omit<RequestFacts, 'header'>> & { readonly headers?: Readonly<Record<string, string>> } = {},
): RequestFacts {
  const { headers = {}, ...given } = facts
  const lines = new Map(Object.entries(headers))
  return { method: 'GET', path: '/', route: undefined, remoteAddress: undefined, ...given, header: (name) => lines.get(name) }
}

/** What the fields of draft 11 say of one policy, read by a parser of structured fields that is not ours. */
export interface ParsedLimit {
  readonly name: string
  readonly q: number
  readonly w: number | undefined
  readonly qu: string | undefined
  /** What the `RateLimit` field says, where it names the policy. */
  readonly r: number | undefined
  readonly t: number | undefined
  readonly pk: string | undefined
}

/** Reads `RateLimit-Policy` and `RateLimit`, and checks what the draft asks of any response. */
export function parsedLimits(pairs: readonly HeaderPair[]): ParsedLimit[] {
  const headers = new Map(pairs)
  assert.equal(headers.size, pairs.length, 'no field is there twice')
  const limits = new Map(parseList(headers.get('RateLimit') ?? '').map(([name, parameters]) => [textOf(name), parameters as Parameters]))
  const policies = parseList(headers.get('RateLimit-Policy') ?? '').map(([bare, parameters]): ParsedLimit => {
    const name = textOf(bare)
    const limit = limits.get(name) ?? new Map<string, BareItem>()
    limits.delete(name)
    const pk = limit.get('pk')
    assert.ok(pk === undefined || pk instanceof ArrayBuffer, 'pk is a byte sequence')
    const qu = parameters.get('qu')
    return {
      name,
      q: wholeOf(parameters.get('q')) ?? assert.fail('q is required'),
      w: wholeOf(parameters.get('w')),
      qu: qu === undefined ? undefined : textOf(qu),
      r: wholeOf(limit.get('r')),
      t: wholeOf(limit.get('t')),
      pk: pk && Buffer.from(pk).toString('base64'),
    }
  })
  assert.equal(limits.size, 0, 'every limit belongs to a reported policy')
  for (const { w, q, r } of policies) {
    assert.ok(w === undefined || w >= 1, 'w is at least 1')
    assert.ok(r === undefined || r <= q, 'r is never above q')
  }
  return policies
}

/** The same of a single policy. */
export function parsedLimit(pairs: readonly HeaderPair[]): ParsedLimit {
  const [only = assert.fail('there is no policy'), ...more] = parsedLimits(pairs)
  assert.deepEqual(more, [])
  return only
}

function textOf(value: unknown): string {
  assert.equal(typeof value, 'string', 'a name is a string')
  return value as string
}

function wholeOf(value: unknown): number | undefined {
  assert.ok(value === undefined || (Number.isInteger(value) && (value as number) >= 0), 'it is a whole number')
  return value as number | undefined
}
