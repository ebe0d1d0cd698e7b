import type { Request, Response } from 'express'
import { type Awaitable, chained } from '../../awaitable.js'
import { warnOnce } from '../../edge/warning.js'
import { parsedAddress } from '../../keys/ip-address.js'
import { ipText } from '../../keys/ip-text.js'
import { identifiedAddress } from '../../keys/node-identifier.js'
import { onceInProcess } from '../../once-in-process.js'
import { checkedSubnetOption, ipKeyGenerator } from './ip-key-generator.js'
import { validates } from './validates.js'

/** Bits of IPv6 that tell clients apart, false for all, or a function of the request. */
export type Ipv6Subnet = number | false | ((request: Request, response: Response) => Awaitable<number | false>)

const warn = /* @__PURE__ */ onceInProcess('warnings: keys of addresses', () => warnOnce())

/**
 * The key where no `keyGenerator` is given: `request.ip`, which Express finds by its setting `trust proxy`, without a port. Where that is no
 * address, the socket's has to do.
 *
 * @param validate the option, which says what is not to be warned of.
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function requestIpKey(
  ipv6Subnet: Ipv6Subnet,
  validate: unknown,
): (request: Request, response: Response) => Awaitable<string | undefined> {
  const fixed = typeof ipv6Subnet === 'function' ? undefined : checkedSubnetOption(ipv6Subnet)
  const looksAtTrust = validates(validate, 'trustProxy')
  const looksForProxies = validates(validate, 'xForwardedForHeader')
  return (request, response) => {
    checkTrust(request, looksAtTrust, looksForProxies)
    const ip = addressOf(request)
    if (ip === undefined) return undefined
    if (fixed !== undefined || !ip.includes(':')) return keyOf(ip, fixed ?? false)
    return chained((ipv6Subnet as Exclude<Ipv6Subnet, number | false>)(request, response), (bits) => keyOf(ip, checkedSubnetOption(bits)))
  }
}

/** The key as {@link ipKeyGenerator} makes it; a whole address in its one spelling, or a client would have a key for each. */
function keyOf(ip: string, bits: number | false): string {
  const key = ipKeyGenerator(ip, bits)
  if (bits !== false) return key
  const address = parsedAddress(key)
  return address === undefined ? key : ipText(address)
}

function addressOf({ ip, socket }: Request): string | undefined {
  if (ip === undefined) return socket.remoteAddress
  const address = identifiedAddress(ip, 0, ip.length)
  if (address === undefined) return socket.remoteAddress
  return parsedAddress(ip) === undefined ? ipText(address) : ip
}

function checkTrust({ app, headers }: Request, looksAtTrust: boolean, looksForProxies: boolean): void {
  const trust: unknown = app?.get('trust proxy')
  if (trust === true && looksAtTrust) {
    warn(
      'SLUICEGATE_PROXY_ANYBODY',
      "Express believes everybody who sends x-forwarded-for, so that clients choose the address that they are counted by: say how many proxies of yours stand in front, app.set('trust proxy', 1)",
    )
  }
  if (trust === false && looksForProxies && headers['x-forwarded-for'] !== undefined) {
    warn(
      'SLUICEGATE_PROXY_UNTRUSTED',
      "a request came with x-forwarded-for, and Express trusts no proxy: if one of yours stands in front, all its clients share one key; say app.set('trust proxy', 1)",
    )
  }
}
