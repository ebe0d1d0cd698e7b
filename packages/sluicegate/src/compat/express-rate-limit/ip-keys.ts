import type { Request, Response } from 'express'
import { type Awaitable, chained } from '../../awaitable.js'
import { checkedSubnet } from '../../keys/address.js'
import { identifiedAddress } from '../../keys/hop-list.js'
import { type IpAddress, ipText, isIpv4, masked, parsedAddress } from '../../keys/ip-address.js'
import { onceInProcess } from '../../once-in-process.js'
import { warnOnce } from '../../warn-once.js'

/** The run-time checks of express-rate-limit that exist here, too, by its names. */
export type Validation = 'trustProxy' | 'xForwardedForHeader' | 'keyGeneratorIpFallback'

/** Whether the option `validate` enables a check: true or undefined enables all, false none, an object each by name. */
export function validates(validate: unknown, name: Validation): boolean {
  if (typeof validate !== 'object' || validate === null) return validate !== false
  const { [name]: own, default: others = true } = validate as Readonly<Record<string, unknown>>
  return Boolean(own ?? others)
}

/** An IPv4 address in IPv6 notation, `::203.0.113.7`: only the notation tells it from other addresses of that network. */
const COMPATIBLE = /^[^%]*\./

/**
 * The key of an address, for a `keyGenerator`, as in express-rate-limit 8.7: IPv4 as it is, also if it is mapped into IPv6; IPv6 by its
 * network. Anything else is returned unchanged, including `undefined` and an address with a port.
 *
 * @param ipv6Subnet bits of IPv6 that tell clients apart, 1 to 128, default 56; false or 0 returns an IPv6 address unchanged.
 * @throws {PolicyError} `OPTION_INVALID` for other values, if the address is IPv6
 * @example ipKeyGenerator('2001:db8:0:42ff::1') // '2001:db8:0:4200::/56'
 */
export function ipKeyGenerator(ip: string, ipv6Subnet: number | false = 56): string {
  // `request.ip` is undefined for a closed socket.
  const address = typeof ip === 'string' && ip.includes(':') ? parsedAddress(ip) : undefined
  if (address === undefined) return ip
  if (isIpv4(address)) return ipText(address)
  if (isCompatible(ip, address)) return ipText({ a: 0, b: 0, c: 0xffff, d: address.d })
  if (!ipv6Subnet) return ip
  // From the environment it is a string, which express-rate-limit accepts.
  const bits = checkedSubnet('ipv6Subnet', typeof ipv6Subnet === 'string' ? Number(ipv6Subnet) : ipv6Subnet, 1, 128)
  return `${ipText(masked(address, bits))}/${bits}`
}

/** The option `ipv6Subnet`, checked. @throws {PolicyError} `OPTION_INVALID` */
function checkedSubnetOption(ipv6Subnet: unknown): number | false {
  return ipv6Subnet === false ? false : checkedSubnet('ipv6Subnet', ipv6Subnet, 32, 128)
}

function isCompatible(ip: string, { a, b, c }: IpAddress): boolean {
  return a === 0 && b === 0 && c === 0 && COMPATIBLE.test(ip)
}

/** Bits of IPv6 that tell clients apart, false for all, or a function of the request. */
export type Ipv6Subnet = number | false | ((request: Request, response: Response) => Awaitable<number | false>)

const warn = /* @__PURE__ */ onceInProcess('warnings: keys of addresses', () => warnOnce())

/**
 * The default key: `request.ip`, which Express finds by its setting `trust proxy`, without a port. If that is not an address, the socket's.
 *
 * @param validate the option, which disables warnings.
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

/** The key as {@link ipKeyGenerator} makes it; a whole address in canonical form, or a client would have a key for each spelling. */
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
      "Express trusts x-forwarded-for from every client, so that clients choose the address they are counted by: set the number of your own proxies in front, app.set('trust proxy', 1)",
    )
  }
  if (trust === false && looksForProxies && headers['x-forwarded-for'] !== undefined) {
    warn(
      'SLUICEGATE_PROXY_UNTRUSTED',
      "a request came with x-forwarded-for, and Express trusts no proxy: if one of yours stands in front, all its clients share one key; say app.set('trust proxy', 1)",
    )
  }
}

/** Keys that are checked. */
const LOOKED_AT = 1_000

/** Checks keys of a `keyGenerator`, and warns of whole IPv6 addresses: each client has a network full of them. */
export function addressCheck(): (key: unknown, request: Request) => void {
  let looks = 0
  return (key, request) => {
    if (looks >= LOOKED_AT || typeof key !== 'string' || !key.includes(':')) return
    looks++
    if (key !== request.ip) return
    const address = identifiedAddress(key, 0, key.length)
    if (address === undefined || isIpv4(address)) return
    warn(
      'SLUICEGATE_IPV6_WHOLE',
      'a keyGenerator gave a whole IPv6 address, and each client has a network full of them: say ipKeyGenerator(request.ip) there, or leave keyGenerator out',
    )
  }
}
