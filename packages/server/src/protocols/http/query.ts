import { Problem } from './problem.js'

const ENCODED = /[%+]/
const PRINTABLE_ASCII = /^[\x21-\x7e]*$/

/** The path and the query string of a request's target, which may be a whole URL (RFC 9112, section 3.2.2). */
export function splitTarget(target: string): { path: string; query: string } {
  const from = target.startsWith('/') ? 0 : Math.max(0, target.indexOf('/', target.indexOf('://') + 3))
  const mark = target.indexOf('?', from)
  return mark < 0 ? { path: target.slice(from), query: '' } : { path: target.slice(from, mark), query: target.slice(mark + 1) }
}

/**
 * The parameters of a query string, in the form that browsers and curl's `--data-urlencode` send: percent-encoded UTF-8,
 * `+` for a space.
 *
 * @throws {Problem} where two proxies in a chain could read the string differently: an invalid encoding, or
 * a parameter given twice.
 */
export function readQuery(query: string): Map<string, string> {
  const parameters = new Map<string, string>()
  if (query === '') return parameters
  if (!PRINTABLE_ASCII.test(query))
    throw new Problem(400, 'PARAMETER_INVALID', 'the query string has characters that must be percent-encoded')
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    if (equals < 0) throw new Problem(400, 'PARAMETER_INVALID', 'every parameter needs a value: write name=value')
    const name = decoded(part.slice(0, equals))
    if (parameters.has(name)) throw new Problem(400, 'PARAMETER_REPEATED', `${quoted(name)} is given more than once: give it once`)
    parameters.set(name, decoded(part.slice(equals + 1)))
  }
  return parameters
}

/** A name from outside, short enough for a message and unable to end its line. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}...` : name)
}

function decoded(text: string): string {
  if (!ENCODED.test(text)) return text
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    throw new Problem(400, 'PARAMETER_INVALID', 'the query string is not percent-encoded UTF-8: encode "%" as %25, and text as UTF-8 first')
  }
}
