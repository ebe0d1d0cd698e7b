import type { RequestFacts } from '../../../sluicegate/dist/keys/key-reader.js'

/** Facts as an adapter makes them, of a GET where nothing else is said. */
export function factsOf(
  facts: Partial<Omit<RequestFacts, 'header'>> & { readonly headers?: Readonly<Record<string, string>> } = {},
): RequestFacts {
  const { headers = {}, ...given } = facts
  const lines = new Map(Object.entries(headers))
  return { method: 'GET', path: '/', route: undefined, remoteAddress: undefined, ...given, header: (name) => lines.get(name) }
}
