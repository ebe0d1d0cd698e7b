import { PolicyError } from '../errors.js'
import { checkOptions } from '../policy/policy-options.js'
import { checkStatus } from './denial-status.js'
import type { AnswerChange } from './gatekeeper-options.js'

const CHANGES = ['status', 'headers', 'body']

/** Source: RFC 9110, sections 5.1 and 5.5. */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** Where a body ends is for its server to say. Source: RFC 9112, section 6. */
const FRAMING: readonly string[] = ['content-length', 'trailer', 'transfer-encoding']

/**
 * What `onDenied` returned, looked at before anything of it is written: a short arrow function returns whatever it did last, the response to
 * another request perhaps, and headers may be made of what clients sent.
 *
 * @throws {PolicyError} `OPTION_INVALID`; `OPTION_UNKNOWN` where it is an object of other names
 */
export function checkedChange(returned: unknown): AnswerChange {
  // A number, or nothing, says nothing about the answer.
  if (typeof returned !== 'object' || returned === null) return {}
  if (isResponse(returned)) {
    throw new PolicyError('OPTION_INVALID', 'onDenied', returned, 'must give { status, headers, body }, and no Response')
  }
  if (isPlain(returned))
    checkOptions(returned, CHANGES, "{ status: 429, headers: [['X-Reason', 'quota']], body: 'later' }", 'the answer that onDenied returns')
  const { status, headers } = returned as AnswerChange
  if (status !== undefined) checkStatus('onDenied', status)
  if (headers === undefined) return returned
  if (!Array.isArray(headers)) {
    throw new PolicyError('OPTION_INVALID', 'onDenied', headers, "must give headers as an array of pairs such as ['X-Reason', 'quota']")
  }
  for (const header of headers) checkHeader('onDenied', header)
  return returned
}

/** Of whatever make. */
function isResponse(returned: object): boolean {
  return Object.prototype.toString.call(returned) === '[object Response]'
}

/** Other objects have names of their own, and are no answer that was misspelt: a logger, say, which the last call returned. */
function isPlain(returned: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(returned)
  return prototype === Object.prototype || prototype === null
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkHeader(option: string, header: unknown): void {
  const [name, value] = Array.isArray(header) ? header : []
  if (FRAMING.includes(String(name).toLowerCase())) {
    throw new PolicyError('OPTION_INVALID', option, header, `cannot give ${name}, which the server tells of the body`)
  }
  if (typeof name === 'string' && typeof value === 'string' && NAME.test(name) && VALUE.test(value)) return
  throw new PolicyError('OPTION_INVALID', option, header, 'must give headers of a name and a value, both text that HTTP takes')
}
