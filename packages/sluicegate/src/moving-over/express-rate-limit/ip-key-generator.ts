import { checkedSubnet } from '../../keys/address-key.js'
import { type IpAddress, isIpv4, parsedAddress } from '../../keys/ip-address.js'
import { masked } from '../../keys/ip-network.js'
import { ipText } from '../../keys/ip-text.js'

/** An IPv4 address written as one of IPv6, `::203.0.113.7`: the notation alone tells it from the other addresses of that network. */
const COMPATIBLE = /^[^%]*\./

/**
 * The key of an address, for a `keyGenerator` that falls back on it, as express-rate-limit 8.7 makes it: IPv4 as it is, also where it is
 * mapped into IPv6, and IPv6 by its network. Anything else is returned unchanged, `undefined` and an address with a port too.
 *
 * @param ipv6Subnet bits of IPv6 that tell clients apart, 1 to 128, default 56; false or 0 returns an IPv6 address unchanged.
 * @throws {PolicyError} `OPTION_INVALID` where an IPv6 address cannot have such a network
 * @example ipKeyGenerator('2001:db8:0:42ff::1') // '2001:db8:0:4200::/56'
 */
export function ipKeyGenerator(ip: string, ipv6Subnet: number | false = 56): string {
  // `request.ip` of a socket that is closed already.
  const address = typeof ip === 'string' && ip.includes(':') ? parsedAddress(ip) : undefined
  if (address === undefined) return ip
  if (isIpv4(address)) return ipText(address)
  if (isCompatible(ip, address)) return ipText({ a: 0, b: 0, c: 0xffff, d: address.d })
  if (!ipv6Subnet) return ip
  // Of the environment it comes as text, which theirs takes.
  const bits = checkedSubnet('ipv6Subnet', typeof ipv6Subnet === 'string' ? Number(ipv6Subnet) : ipv6Subnet, 1, 128)
  return `${ipText(masked(address, bits))}/${bits}`
}

/** Of the option `ipv6Subnet`. @throws {PolicyError} `OPTION_INVALID` */
export function checkedSubnetOption(ipv6Subnet: unknown): number | false {
  return ipv6Subnet === false ? false : checkedSubnet('ipv6Subnet', ipv6Subnet, 32, 128)
}

function isCompatible(ip: string, { a, b, c }: IpAddress): boolean {
  return a === 0 && b === 0 && c === 0 && COMPATIBLE.test(ip)
}
