import { addressKey } from '../../keys/address-key.js'
import { identifiedAddress } from '../../keys/node-identifier.js'

/** Of IPv4 addresses each is a client. */
const IPV4_BITS = 32

/**
 * The key of an address, for a `keyGenerator` that falls back on it: IPv4 as it is, IPv6 by its network. A port is dropped, and a mapped
 * IPv4 address is that address. What is no address stays as it is.
 *
 * @param ipv6Subnet bits of IPv6 that tell clients apart, default 56; false for all of them.
 * @example ipKeyGenerator('2001:db8:0:42ff::1') // '2001:db8:0:4200::/56'
 */
export function ipKeyGenerator(ip: string, ipv6Subnet: number | false = 56): string {
  const address = identifiedAddress(ip, 0, ip.length)
  return address === undefined ? ip : addressKey(address, IPV4_BITS, ipv6Subnet === false ? 128 : ipv6Subnet)
}
