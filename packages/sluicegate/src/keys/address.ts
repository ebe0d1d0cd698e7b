import { PolicyError } from '../errors.js'
import { checkFunction, checkOptions, isInteger } from '../options/option-checks.js'
import {
  clientBehindHops,
  clientBehindNetworks,
  type FallbackReason,
  hopListOf,
  MOST_HOPS,
  socketAddress,
  type Trail,
} from './client-address.js'
import { checkedNetworks, IPV4_BITS, type IpAddress, ipText, isIpv4, isIpv4Text, masked, parsedAddress } from './ip-address.js'
import { checkedHeaderName, type KeyReader, type ReaderOptions, type RequestFacts, readerOptions, withOtherwise } from './key-reader.js'

/** Options of {@link address}. */
export interface AddressOptions<Request = unknown> extends ReaderOptions<Request> {
  /**
   * The number of your own proxies in front of the server, 0 to 32: addresses of the header are counted from the right.
   *
   * @defaultValue `0`: the socket's address
   * @example address({ trustedHops: 1 })
   */
  readonly trustedHops?: number
  /**
   * The networks of your own proxies, instead of their number: addresses in them are skipped from the right. Each is a network, an address,
   * or `loopback`, `linklocal`, `uniquelocal`.
   *
   * @defaultValue none
   * @example address({ trustedNetworks: ['loopback', '10.0.0.0/8'] })
   */
  readonly trustedNetworks?: readonly string[]
  /**
   * The header in which your proxies write the client's address; `forwarded`, or one with a single address that they overwrite. Read only
   * with `trustedHops` or `trustedNetworks`.
   *
   * @defaultValue `'x-forwarded-for'`
   * @example address({ trustedHops: 1, header: 'cf-connecting-ip' })
   */
  readonly header?: string
  /**
   * Bits of an IPv6 address that tell clients apart, 32 to 128. A subscriber is assigned a /56 or a /64, sometimes a /48.
   *
   * @defaultValue `56`
   * @example address({ ipv6Subnet: 64 })
   */
  readonly ipv6Subnet?: number
  /**
   * The same for IPv4, 8 to 32.
   *
   * @defaultValue `32`
   * @example address({ ipv4Subnet: 24 })
   */
  readonly ipv4Subnet?: number
  /**
   * Called each time that an address nearer than the client's is used; what it throws is rethrown.
   *
   * @defaultValue none
   * @example address({ trustedHops: 1, onFallback: (reason) => console.warn(reason) })
   */
  readonly onFallback?: (reason: FallbackReason, facts: RequestFacts) => void
}

/** The reader that {@link address} returns, with what it trusts. */
export interface AddressReader<Request = unknown> extends KeyReader<Request> {
  /** The header that it reads; undefined if it trusts none. */
  readonly header: string | undefined
}

const OPTIONS = ['trustedHops', 'trustedNetworks', 'header', 'ipv6Subnet', 'ipv4Subnet', 'onFallback', 'otherwise']
const GUIDE = 'see node_modules/sluicegate/docs/keys.md'

/**
 * The client's address as the key: `203.0.113.7`, `2001:db8:0:4200::/56`. Headers are believed only as far as your own proxies wrote them.
 * If they name no client address, the last address that they name is used, in the end the socket's.
 *
 * A request has no key over a Unix socket without a proxy in front, or when the socket is closed already.
 *
 * @throws {PolicyError} `TRUST_INVALID`, also for `true`; `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example
 * address()                                                  // no proxy in front
 * address({ trustedHops: 1 })                                // one proxy
 * address({ trustedNetworks: ['10.0.0.0/8', 'loopback'] })   // any number of proxies, in these networks
 */
export function address<Request = unknown>(options: AddressOptions<Request> = {}): KeyReader<Request> {
  const checked = readerOptions(options, OPTIONS, '{ trustedHops: 1 }', 'address()')
  const {
    trustedHops,
    trustedNetworks,
    header: name = 'x-forwarded-for',
    ipv6Subnet = 56,
    ipv4Subnet = 32,
    onFallback,
    otherwise,
  } = checked
  const hops = checkedHops(trustedHops)
  const networks = trustedNetworks === undefined ? undefined : checkedTrust(trustedNetworks)
  if (networks !== undefined && trustedHops !== undefined) {
    throw new PolicyError('TRUST_INVALID', 'trustedHops', trustedHops, `must not be given with trustedNetworks: use one of them, ${GUIDE}`)
  }
  const trusts = hops > 0 || networks !== undefined
  const header = checkedHeaderName('header', name)
  if (checked.header !== undefined && !trusts) {
    const mend = `is trusted only from your own proxies: give trustedHops or trustedNetworks as well, ${GUIDE}`
    throw new PolicyError('TRUST_INVALID', 'header', header, mend)
  }
  checkFunction('onFallback', onFallback)
  const list = hopListOf(header)
  const isSingle = header !== 'x-forwarded-for' && header !== 'forwarded'
  const ipv6Bits = checkedSubnet('ipv6Subnet', ipv6Subnet, 32, 128)
  const ipv4Bits = checkedSubnet('ipv4Subnet', ipv4Subnet, 8, 32)

  const clientOf = (facts: RequestFacts): IpAddress | undefined => {
    const socket = facts.remoteAddress
    if (!trusts) return socketAddress({ socket })
    const fallback = onFallback === undefined ? ignored : (reason: FallbackReason) => onFallback(reason, facts)
    const trail: Trail = { socket, text: facts.header(header), list, fallback }
    if (networks !== undefined) return clientBehindNetworks(trail, networks)
    // A header with a single address has one hop, however many proxies there are: the proxy that wrote it names the client.
    return clientBehindHops(trail, isSingle ? 1 : hops)
  }
  const reader: AddressReader<Request> = {
    name: trusts ? `address(${header})` : 'address()',
    header: trusts ? header : undefined,
    read(facts) {
      const { remoteAddress } = facts
      if (!trusts && ipv4Bits === 32 && remoteAddress !== undefined) {
        // The most common address is its own key, except for the prefix that dual-stack sockets report.
        const text = remoteAddress.startsWith('::ffff:') ? remoteAddress.slice(7) : remoteAddress
        if (isIpv4Text(text)) return text
      }
      const client = clientOf(facts)
      return client === undefined ? undefined : addressKey(client, ipv4Bits, ipv6Bits)
    },
  }
  return withOtherwise(reader, otherwise)
}

function ignored(): void {}

function checkedHops(hops: unknown): number {
  if (hops === undefined) return 0
  if (isInteger(hops, 0, MOST_HOPS)) return hops
  throw new PolicyError(
    'TRUST_INVALID',
    'trustedHops',
    hops,
    `${believing(hops)}must be the number of your own proxies in front, 0 to ${MOST_HOPS}, ${GUIDE}`,
  )
}

function checkedTrust(networks: unknown): ReturnType<typeof checkedNetworks> {
  if (Array.isArray(networks) && networks.length > 0) return checkedNetworks('trustedNetworks', networks)
  const mend = `${believing(networks)}must be an array of the networks that your own proxies are in, ${GUIDE}`
  throw new PolicyError('TRUST_INVALID', 'trustedNetworks', networks, mend)
}

function believing(value: unknown): string {
  return value === true ? 'would trust any address that a client makes up; ' : ''
}

/** An IPv4 address comes with a whole /48 by 6to4. */
const BITS_OF_6TO4 = 48

/**
 * The text of the network that an address is counted in: `203.0.113.7`, `203.0.113.0/24`, `2001:db8:0:4200::/56`.
 *
 * - An IPv4 address behind a translator with the well-known prefix, `64:ff9b::203.0.113.7`, is counted as that IPv4 address: a subnet would
 *   be the whole of IPv4 (RFC 6052, section 2.1).
 * - 6to4, `2002::/16`, is counted by /48 at the finest, which is one IPv4 address (RFC 3056, section 2).
 */
export function addressKey(address: IpAddress, ipv4Bits: number, ipv6Bits: number): string {
  const { a, b, c, d } = address
  if (isIpv4(address)) return subnetText(address, ipv4Bits, IPV4_BITS)
  if (a === 0x64ff9b && b === 0 && c === 0) return subnetText({ a: 0, b: 0, c: 0xffff, d }, ipv4Bits, IPV4_BITS)
  return subnetText(address, a >>> 16 === 0x2002 ? Math.min(ipv6Bits, BITS_OF_6TO4) : ipv6Bits, 0)
}

/** Options of {@link clientNetwork}. */
export interface NetworkOptions {
  /**
   * As in {@link address}, 32 to 128.
   *
   * @defaultValue `56`
   * @example clientNetwork({ ipv6Subnet: 64 })
   */
  readonly ipv6Subnet?: number
  /**
   * As in {@link address}, 8 to 32.
   *
   * @defaultValue `32`
   * @example clientNetwork({ ipv4Subnet: 24 })
   */
  readonly ipv4Subnet?: number
  /**
   * Which address of a list, counted from the right, 1 to 32; of a shorter list the first.
   *
   * @defaultValue `1`: the last
   * @example clientNetwork({ hop: 2 })
   */
  readonly hop?: number
}

/**
 * What {@link address} does with an address, for texts that may be none: keys that a proxy or a log writes. The function returns the key of
 * the client, such as `203.0.113.7` or `2001:db8:0:4200::/56`, and undefined for any other text. It reads one address or a list
 * (`X-Forwarded-For`, `Forwarded`), with ports, brackets, quotes and zones. Where the proxy wrote `unknown`, `unix:`, `-` or `_name` in such a
 * list, that is the key: what a client wrote before it does not count. The length of a network, as in `2001:db8::/64`, is not read: the
 * subnet of the options counts.
 *
 * Of IPv6 only networks in use are addresses (2000::/3, fc00::/7, fe80::/10, `::1`, translated and mapped IPv4): `cafe::1` and the EUI-64
 * `00:11:22:33:44:55:66:77` are names.
 *
 * @throws {PolicyError} `OPTION_INVALID`, `OPTION_UNKNOWN`
 * @example
 * const networkOf = clientNetwork()
 * networkOf('198.51.100.1, [2001:db8:0:4217::1]:40001')   // '2001:db8:0:4200::/56'
 * networkOf('alice') ?? 'alice'
 */
export function clientNetwork(options: NetworkOptions = {}): (text: string) => string | undefined {
  const checked = checkOptions(options, ['ipv6Subnet', 'ipv4Subnet', 'hop'], '{ ipv6Subnet: 64 }', 'clientNetwork()')
  const ipv6Bits = checkedSubnet('ipv6Subnet', checked.ipv6Subnet ?? 56, 32, 128)
  const ipv4Bits = checkedSubnet('ipv4Subnet', checked.ipv4Subnet ?? 32, 8, 32)
  const { hop = 1 } = checked
  if (!isInteger(hop, 1, MOST_HOPS)) throw new PolicyError('OPTION_INVALID', 'hop', hop, `must be an integer from 1 to ${MOST_HOPS}`)
  return (text) => {
    if (ipv4Bits === 32 && isIpv4Text(text)) return text
    const unnamed = text.includes(',') ? UNNAMED.exec(elementsOf(text, asWritten).split(',').at(-hop) ?? '')?.[1] : undefined
    if (unnamed !== undefined) return unnamed.toLowerCase()
    if (!ADDRESS_MARK.test(text)) return undefined
    const client = parsedAddress(text) ?? clientInList(text, hop)
    return client !== undefined && isInUse(client) ? addressKey(client, ipv4Bits, ipv6Bits) : undefined
  }
}

const ADDRESS_MARK = /[.:]/
/** A client of which the proxy knows no address, as nginx of the other end of a Unix socket. Source: RFC 7239, section 6 */
const UNNAMED = /(?:^|\bfor=)"?(unknown|unix:|-|_[\w.-]+)(?=$|[\s";])/i
const FORWARDED_FOR = /for=/i
/** Longer ones are no address. */
const MOST_SPELLING = 200
/** What tells nothing of the client: quotes, a zone, the length of a network, brackets around IPv4. */
const QUOTES = /^(["'])(.*)\1$/
const ZONE = /%[^\]]*/
const LENGTH = /\/\d*(?=\]?(?::\d*)?$)/
const BRACKETED_IPV4 = /^\[([\d.]+)\]/
/** No port, or one that cannot be. */
const PORT = /^(\[[^\]]*\]|[\d.]+):(?:\d{5,})?$/
/** Some proxies write a port after IPv6 without brackets, which shows where no group is left out. */
const PORT_AFTER_GROUPS = /^((?:[\da-f]{1,4}:){7}[\da-f]{1,4}):\d*$/i

function clientInList(text: string, hop: number): IpAddress | undefined {
  const isForwarded = endsForwarded(elementsOf(text, asWritten))
  const list = hopListOf(isForwarded ? 'forwarded' : 'x-forwarded-for')
  const plain = elementsOf(text, isForwarded ? asWritten : plainly)
  return clientBehindHops({ socket: undefined, text: plain, list, fallback: ignored }, hop)
}

/** The syntax is that of the last proxy: a client may write `for=` before its `X-Forwarded-For`, each time another text. */
function endsForwarded(list: string): boolean {
  return FORWARDED_FOR.test(list.slice(Math.max(0, hopListOf('forwarded').startOf(list, list.length))))
}

/** The last elements of a list, each as `spelled` says; without empty ones at its ends, which a client can add. */
function elementsOf(text: string, spelled: (element: string) => string): string {
  const elements = text.split(',').map((element) => element.trim())
  const last = elements.findLastIndex((element) => element !== '')
  const first = elements.findIndex((element) => element !== '')
  return elements
    .slice(Math.max(first, last + 1 - MOST_HOPS), last + 1)
    .map(spelled)
    .join(',')
}

function asWritten(element: string): string {
  return element
}

/** One address has one spelling: whoever can choose another one would have another budget. */
function plainly(element: string): string {
  if (element.length > MOST_SPELLING) return element
  const bare = element.replace(QUOTES, '$2').trim().replace(ZONE, '').replace(LENGTH, '')
  return bare.replace(PORT, '$1').replace(PORT_AFTER_GROUPS, '$1').replace(BRACKETED_IPV4, '$1')
}

/** Source: the IANA registry of IPv6: global unicast, unique local and link-local addresses, 64:ff9b::/32 of translators, loopback. */
function isInUse(address: IpAddress): boolean {
  const { a, b, c, d } = address
  if (a === 0) return isIpv4(address) || (b === 0 && c === 0 && d === 1)
  return a >>> 29 === 1 || a >>> 25 === 0x7e || a >>> 22 === 0x3fa || a === 0x64ff9b
}

/** @throws {PolicyError} `OPTION_INVALID` */
export function checkedSubnet(option: string, bits: unknown, least: number, most: number): number {
  if (isInteger(bits, least, most)) return bits
  throw new PolicyError(
    'OPTION_INVALID',
    option,
    bits,
    `must be an integer from ${least} to ${most}: how many bits of an address tell clients apart`,
  )
}

/** @param ahead bits of the 128 that precede those of the address family. */
function subnetText(address: IpAddress, bits: number, ahead: number): string {
  return bits + ahead === 128 ? ipText(address) : `${ipText(masked(address, bits + ahead))}/${bits}`
}
