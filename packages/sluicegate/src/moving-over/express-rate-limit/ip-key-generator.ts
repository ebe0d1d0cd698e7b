import { addressKey, checkedSubnet } from '../../keys/address-key.js'
import { identifiedAddress } from '../../keys/node-identifier.js'

/** Of IPv4 addresses each is a client. */
const IPV4_BITS = 32

/**
 * The key of an address, for a `keyGenerator` that falls back on it: IPv4 as it is, IPv6 by its network. A port is dropped, and a mapped
 * IPv4 address is that address. What is no address stays as it is, undefined too.
 *
 * @param ipv6Subnet bits of IPv6 that tell clients apart, 32 to 128, default 56; false or 0 for all of them.
 * @throws {PolicyError} `OPTION_INVALID`
 * @example ipKeyGenerator('2001:db8:0:42ff::1') // '2001:db8:0:4200::/56'
 */
export function ipKeyGenerator(ip: string, ipv6Subnet: number | false = 56): string {
  const bits = subnetBits(ipv6Subnet || false)
  // `request.ip` of a socket that is closed already.
  if (typeof ip !== 'string') return ip
  const address = identifiedAddress(ip, 0, ip.length)
  return address === undefined ? ip : addressKey(address, IPV4_BITS, bits)
}

/** Of the option `ipv6Subnet`. @throws {PolicyError} `OPTION_INVALID` */
export function subnetBits(ipv6Subnet: unknown): number {
  return ipv6Subnet === false ? 128 : checkedSubnet('ipv6Subnet', ipv6Subnet, 32, 128)
}
