import { PolicyError } from '../errors.js'
import { type IpAddress, ipText, isIpv4, parsedAddress } from './ip-address.js'

/** The addresses whose first `bits` of 128 equal those of `first`. */
export interface IpNetwork {
  readonly first: IpAddress
  readonly bits: number
}

/** Express has the same names. */
const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  linklocal: ['169.254.0.0/16', 'fe80::/10'],
  uniquelocal: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'],
}
const names = new Map(Object.entries(NAMED))

/** The bits before an IPv4 address among the 128. */
export const IPV4_BITS = 96
/** 0.0.0.0, mapped: an IPv6 network of this size or wider that contains it contains all of IPv4. */
const IPV4: IpAddress = { a: 0, b: 0, c: 0xffff, d: 0 }
/** The widest networks of one owner: 10.0.0.0/8 and fc00::/7. */
const WIDEST_IPV4 = 8
const WIDEST_IPV6 = 7

/**
 * Networks of your own proxies: `10.0.0.0/8`, `2001:db8::/32`, a single address, or `loopback`, `linklocal`, `uniquelocal`.
 *
 * @throws {PolicyError} `TRUST_INVALID`
 */
export function checkedNetworks(option: string, texts: readonly string[]): readonly IpNetwork[] {
  return texts.flatMap((text, i) => {
    const named = typeof text === 'string' ? names.get(text) : undefined
    return (named ?? [text]).map((each) => checkedNetwork(`${option}[${i}]`, each))
  })
}

export function isIn({ first, bits }: IpNetwork, { a, b, c, d }: IpAddress): boolean {
  if ((a ^ first.a) & mask(bits)) return false
  if (bits > 32 && (b ^ first.b) & mask(bits - 32)) return false
  if (bits > 64 && (c ^ first.c) & mask(bits - 64)) return false
  return bits <= 96 || !((d ^ first.d) & mask(bits - 96))
}

/** The first address of the network of `bits` that contains an address. */
export function masked({ a, b, c, d }: IpAddress, bits: number): IpAddress {
  return { a: a & mask(bits), b: b & mask(bits - 32), c: c & mask(bits - 64), d: d & mask(bits - 96) }
}

/** A word with its highest bits set: none for 0 and below, all for 32 and above. */
function mask(bits: number): number {
  return bits >= 32 ? -1 : bits <= 0 ? 0 : -1 << (32 - bits)
}

function checkedNetwork(option: string, text: unknown): IpNetwork {
  if (typeof text !== 'string') throw invalid(option, text)
  const slash = text.indexOf('/')
  const address = parsedAddress(text, 0, slash < 0 ? text.length : slash)
  if (address === undefined || text.includes('%')) throw invalid(option, text)
  // A mapped network may have either count of bits: ::ffff:10.0.0.0/104 or 10.0.0.0/8.
  const ahead = isIpv4(address) && !text.includes(':') ? IPV4_BITS : 0
  const bits = slash < 0 ? 128 : ahead + prefixLength(text.slice(slash + 1))
  if (!(bits <= 128) || (isIpv4(address) && bits < IPV4_BITS)) throw invalid(option, text)
  const first = masked(address, bits)
  if (bits < (isIpv4(address) || isIn({ first, bits }, IPV4) ? IPV4_BITS + WIDEST_IPV4 : WIDEST_IPV6)) {
    throw new PolicyError('TRUST_INVALID', option, text, 'is wider than any network of proxies; name the networks of your own proxies')
  }
  if (first.a === address.a && first.b === address.b && first.c === address.c && first.d === address.d) return { first, bits }
  throw new PolicyError(
    'TRUST_INVALID',
    option,
    text,
    `is an address within ${ipText(first)}/${bits - ahead}; write that, or the address alone`,
  )
}

/** The number, or NaN: only digits, up to three, no leading zero. */
function prefixLength(text: string): number {
  return /^(0|[1-9][0-9]{0,2})$/.test(text) ? Number(text) : Number.NaN
}

function invalid(option: string, value: unknown): PolicyError {
  return new PolicyError(
    'TRUST_INVALID',
    option,
    value,
    "must be a network such as '10.0.0.0/8', an address, or 'loopback', 'linklocal', 'uniquelocal'",
  )
}
