import { escapedPart } from './escaped-part.js'
import { fittedKey } from './fitted-key.js'
import type { KeyReader } from './key-reader.js'

/**
 * The route that matched as the key: `route:/users/:id`. It is the pattern and never the path, of which clients can make up as many as they
 * like. Requests that match no route, or come before there is one, share the key `route`.
 */
export function route(): KeyReader {
  return ROUTE
}

const ROUTE: KeyReader = Object.freeze({
  name: 'route()',
  read: ({ route }) => (route === undefined || route === '' ? 'route' : fittedKey(escapedPart(`route:${route}`))),
} satisfies KeyReader)
