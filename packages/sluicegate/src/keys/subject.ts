import { PolicyError } from '../errors.js'
import { checkOptions } from '../policy/policy-options.js'
import { escapedPart } from './escaped-part.js'
import { fittedKey } from './fitted-key.js'
import { type KeyReader, type ReaderOptions, withOtherwise } from './key-reader.js'

/** Who a request is from. Null, undefined and the empty string are nobody. */
export type Subject = string | number | bigint | null | undefined

/**
 * The subject of a token, or the user of a session, that was verified before: `subject:42`. `read` gets the framework's own request.
 *
 * A number and its text are one subject. Anything else than these is refused: the text of an object would be the same for all.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`; at a request `KEY_INVALID`
 * @example
 * subject((request: { user?: { id: string } }) => request.user?.id, { otherwise: address() })
 */
export function subject<Request = unknown>(read: (request: Request) => Subject, options: ReaderOptions<Request> = {}): KeyReader<Request> {
  checkOptions(options, ['otherwise'], '{ otherwise: address() }', 'subject()')
  if (typeof read !== 'function') throw new PolicyError('OPTION_INVALID', 'read', read, 'must be a function of the request')
  const reader: KeyReader<Request> = {
    name: 'subject()',
    read(_, request) {
      const found = textOf(read(request))
      return found === undefined ? undefined : fittedKey(escapedPart(`subject:${found}`))
    },
  }
  return withOtherwise(reader, options.otherwise)
}

function textOf(found: unknown): string | undefined {
  if (found === undefined || found === null || found === '') return undefined
  if (typeof found === 'string') return found
  if (typeof found === 'bigint' || (typeof found === 'number' && Number.isFinite(found))) return String(found)
  throw new PolicyError('KEY_INVALID', 'subject', found, 'must be a string, a finite number or a bigint; undefined for nobody')
}
