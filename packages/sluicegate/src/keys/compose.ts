import { PolicyError } from '../errors.js'
import { escapedPart, JOINT } from './escaped-part.js'
import { fittedKey } from './fitted-key.js'
import { checkReader, type KeyReader } from './key-reader.js'

const MOST_READERS = 8

/**
 * Several keys as one: `203.0.113.7|method:POST|route:/login`. Other parts make another key, whatever they hold, and no
 * reader's key is one of several readers: a `|` or a backslash within a part gets a backslash before it. Where one part has no key there is none; parts have their own `otherwise`.
 *
 * @param readers 2 to 8 of them.
 * @throws {PolicyError} `OPTION_INVALID`
 * @example
 * compose(address({ trustedHops: 1 }), method(), route())
 */
export function compose<Request = unknown>(...readers: readonly KeyReader<Request>[]): KeyReader<Request> {
  if (readers.length < 2 || readers.length > MOST_READERS) {
    throw new PolicyError('OPTION_INVALID', 'readers', readers, `must be 2 to ${MOST_READERS} key readers`)
  }
  for (const [i, reader] of readers.entries()) checkReader(`readers[${i}]`, reader)
  return Object.freeze({
    name: `compose(${readers.map(({ name }) => name).join(', ')})`,
    readers,
    read(facts, request) {
      let key = ''
      for (let i = 0; i < readers.length; i++) {
        const part = readers[i]?.read(facts, request)
        if (part === undefined || part === '') return undefined
        key += (i > 0 ? JOINT : '') + escapedPart(part)
      }
      return fittedKey(key)
    },
  } satisfies KeyReader<Request>)
}
