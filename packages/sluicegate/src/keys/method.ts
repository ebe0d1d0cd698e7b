import type { KeyReader } from './key-reader.js'

const METHODS = new Map([
  // Answered as GET is, but for the body: a budget of its own would double that of a route.
  ['HEAD', 'method:GET'],
  ...['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE', 'CONNECT'].map((name) => [name, `method:${name}`] as const),
])

/**
 * The method as the key: `method:POST`. HEAD counts as GET. Methods outside RFC 9110, PATCH and QUERY share `method:other`: clients can
 * make up as many as they like.
 */
export function method(): KeyReader {
  return METHOD
}

const METHOD: KeyReader = Object.freeze({
  name: 'method()',
  read: ({ method }) => METHODS.get(method) ?? 'method:other',
} satisfies KeyReader)
