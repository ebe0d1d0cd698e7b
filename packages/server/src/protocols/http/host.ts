import type { IncomingMessage } from 'node:http'
import { isGivenTwice, Problem } from './problem.js'

/** A name, an IPv4 address or an IPv6 address in brackets, and a port (RFC 3986, section 3.2); it may be empty. */
const HOST = /^(?:\[[\da-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/i

/**
 * Two proxies in a chain could use different ones of several Host fields.
 *
 * Source: RFC 9112, section 3.2.
 *
 * @throws {Problem} for a request whose host is not clear.
 */
export function checkHost({ rawHeaders, headers: { host }, httpVersion }: IncomingMessage): void {
  if (host === undefined) {
    if (httpVersion === '1.1') throw new Problem(400, 'REQUEST_INVALID', 'the Host header is missing')
    return
  }
  if (isGivenTwice(rawHeaders, 'host')) throw new Problem(400, 'REQUEST_INVALID', 'Host is given more than once: give it once')
  if (!isHost(host)) throw new Problem(400, 'REQUEST_INVALID', 'Host must be a name or an address, and a port where it needs one')
}

/** Whether `text` can be the value of a Host field. */
export function isHost(text: string): boolean {
  return HOST.test(text)
}
