import { PolicyError } from '../errors.js'
import { checkOptions } from '../policy/policy-options.js'
import { escapedPart } from './escaped-part.js'
import { fittedKey } from './fitted-key.js'
import { type KeyReader, type ReaderOptions, withOtherwise } from './key-reader.js'

/**
 * A header's value as the key: `header:x-tenant:acme`. Clients send what they like: this is for headers that a proxy of your own sets
 * and overwrites, or beside other limits.
 *
 * A header that is absent or empty gives none.
 *
 * @throws {PolicyError} `OPTION_INVALID` when the name is none, `OPTION_UNKNOWN`
 */
export function header<Request = unknown>(name: string, options: ReaderOptions<Request> = {}): KeyReader<Request> {
  checkOptions(options, ['otherwise'], '{ otherwise: address() }', 'header()')
  const lowerCase = checkedHeaderName('name', name)
  const prefix = `header:${lowerCase}:`
  const reader: KeyReader<Request> = {
    name: `header(${lowerCase})`,
    read(facts) {
      const value = facts.header(lowerCase)?.trim()
      return value === undefined || value === '' ? undefined : fittedKey(escapedPart(prefix + value))
    },
  }
  return withOtherwise(reader, options.otherwise)
}

/**
 * The name in lower case. Source: RFC 9110, section 5.1.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function checkedHeaderName(option: string, name: unknown): string {
  if (typeof name === 'string' && /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,200}$/.test(name)) return name.toLowerCase()
  throw new PolicyError('OPTION_INVALID', option, name, "must be the name of a header, such as 'x-api-key'")
}
