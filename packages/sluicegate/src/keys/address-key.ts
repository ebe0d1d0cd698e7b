import { PolicyError } from '../errors.js'
import { type IpAddress, isIpv4 } from './ip-address.js'
import { IPV4_BITS, masked } from './ip-network.js'
import { ipText } from './ip-text.js'

/** Whoever has one IPv4 address has a whole /48 by 6to4. */
const BITS_OF_6TO4 = 48

/**
 * The text of the network that an address is counted in: `203.0.113.7`, `203.0.113.0/24`, `2001:db8:0:4200::/56`.
 *
 * - An IPv4 address behind a translator of the well-known prefix, `64:ff9b::203.0.113.7`, is counted as that IPv4 address: a subnet would
 *   be the whole of IPv4 (RFC 6052, section 2.1).
 * - 6to4, `2002::/16`, is counted by /48 at the finest, which is one IPv4 address (RFC 3056, section 2).
 */
export function addressKey(address: IpAddress, ipv4Bits: number, ipv6Bits: number): string {
  const { a, b, c, d } = address
  if (isIpv4(address)) return subnetText(address, ipv4Bits, IPV4_BITS)
  if (a === 0x64ff9b && b === 0 && c === 0) return subnetText({ a: 0, b: 0, c: 0xffff, d }, ipv4Bits, IPV4_BITS)
  return subnetText(address, a >>> 16 === 0x2002 ? Math.min(ipv6Bits, BITS_OF_6TO4) : ipv6Bits, 0)
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkedSubnet(option: string, bits: unknown, least: number, most: number): number {
  if (typeof bits === 'number' && Number.isInteger(bits) && bits >= least && bits <= most) return bits
  throw new PolicyError(
    'OPTION_INVALID',
    option,
    bits,
    `must be an integer from ${least} to ${most}: how many bits of an address tell clients apart`,
  )
}

/** @param ahead bits before those of the address itself, of 128. */
function subnetText(address: IpAddress, bits: number, ahead: number): string {
  return bits + ahead === 128 ? ipText(address) : `${ipText(masked(address, bits + ahead))}/${bits}`
}
