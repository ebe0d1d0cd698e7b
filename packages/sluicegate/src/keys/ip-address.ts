import { PolicyError } from '../errors.js'

/**
 * An address of 128 bits in four words, highest first. An IPv4 address is represented by the IPv6 address it is mapped to,
 * `::ffff:1.2.3.4`: both spellings are one address.
 */
export interface IpAddress {
  readonly a: number
  readonly b: number
  readonly c: number
  readonly d: number
}

/** The longest text of an address, with a zone of the length of an interface name. */
export const LONGEST_ADDRESS = 80

const GROUPS = 8
const groups = new Int32Array(GROUPS)

/**
 * The address from `start` to `end`; undefined if there is anything else. Strict: IPv4 is four decimal numbers without leading zeros, as
 * some parsers read `010.0.0.1` as octal; `127.1` and `0x7f000001` are not addresses. A zone (`%eth0`) after an IPv6 address is skipped.
 *
 * Source: RFC 3986, section 3.2.2; RFC 4291, section 2.2; RFC 6874 for zones.
 */
export function parsedAddress(text: string, start = 0, end = text.length): IpAddress | undefined {
  if (end - start > LONGEST_ADDRESS) return undefined
  for (let i = start; i < end; i++) {
    const unit = text.charCodeAt(i)
    if (unit === 0x2e) return parsedIpv4(text, start, end)
    if (unit === 0x3a) return parsedIpv6(text, start, end)
  }
  return undefined
}

export function isIpv4({ a, b, c }: IpAddress): boolean {
  return c === 0xffff && a === 0 && b === 0
}

/** Whether it is a whole address of IPv6 that a client on the internet may have (2000::/3). */
export function isWholeIpv6(text: string): boolean {
  const address = parsedAddress(text)
  return address !== undefined && address.a >>> 29 === 1
}

/** Whether it is an IPv4 address in dotted decimal, which has one spelling. */
export function isIpv4Text(text: string): boolean {
  return ipv4Word(text, 0, text.length) !== undefined
}

function parsedIpv4(text: string, start: number, end: number): IpAddress | undefined {
  const d = ipv4Word(text, start, end)
  return d === undefined ? undefined : { a: 0, b: 0, c: 0xffff, d }
}

function ipv4Word(text: string, start: number, end: number): number | undefined {
  let word = 0
  let octet = -1
  let dots = 0
  for (let i = start; i < end; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0x30 && unit <= 0x39) {
      // A leading zero has to be the only digit.
      if (octet === 0) return undefined
      octet = (octet < 0 ? 0 : octet * 10) + unit - 0x30
      if (octet > 255) return undefined
    } else {
      if (unit !== 0x2e || octet < 0 || ++dots > 3) return undefined
      word = (word << 8) | octet
      octet = -1
    }
  }
  return dots === 3 && octet >= 0 ? (word << 8) | octet : undefined
}

function parsedIpv6(text: string, start: number, limit: number): IpAddress | undefined {
  // What dual-stack sockets report for every IPv4 client.
  if (text.startsWith('::ffff:', start)) {
    const mapped = parsedIpv4(text, start + 7, limit)
    if (mapped !== undefined) return mapped
  }
  let end = limit
  let count = 0
  let gapAt = -1
  let i = start
  if (text.charCodeAt(i) === 0x3a) {
    if (end - start < 2 || text.charCodeAt(i + 1) !== 0x3a) return undefined
    gapAt = 0
    i += 2
  }
  while (i < end) {
    if (count === GROUPS) return undefined
    const groupStart = i
    let group = 0
    for (; i < end; i++) {
      const digit = hexDigit(text.charCodeAt(i))
      if (digit < 0) break
      group = (group << 4) | digit
    }
    if (i < end && text.charCodeAt(i) === 0x2e) {
      const word = ipv4Word(text, groupStart, addressEnd(text, i, end))
      if (word === undefined || count > GROUPS - 2) return undefined
      groups[count++] = word >>> 16
      groups[count++] = word & 0xffff
      break
    }
    if (i < end && text.charCodeAt(i) === 0x25) {
      end = addressEnd(text, i, end)
      if (end !== i) return undefined
      // After a gap no group has to follow.
      if (i === groupStart && gapAt === count) break
    }
    if (i === groupStart || i - groupStart > 4) return undefined
    groups[count++] = group
    if (i === end) break
    if (text.charCodeAt(i) !== 0x3a || ++i === end) return undefined
    if (text.charCodeAt(i) === 0x3a) {
      if (gapAt >= 0) return undefined
      gapAt = count
      i++
    }
  }
  if (gapAt < 0 ? count < GROUPS : count === GROUPS) return undefined
  if (gapAt >= 0) {
    // The groups after the gap move to the end.
    for (let from = count - 1, to = GROUPS - 1; to >= gapAt; from--, to--) groups[to] = from >= gapAt ? (groups[from] as number) : 0
  }
  return { a: word(0), b: word(2), c: word(4), d: word(6) }
}

function word(i: number): number {
  return ((groups[i] as number) << 16) | (groups[i + 1] as number)
}

/** The end of the address before a zone: `end` without a zone, -1 for an invalid zone. */
function addressEnd(text: string, start: number, end: number): number {
  for (let i = start; i < end; i++) {
    if (text.charCodeAt(i) !== 0x25) continue
    for (let j = i + 1; j < end; j++) if (!isZoneUnit(text.charCodeAt(j))) return -1
    return i + 1 < end ? i : -1
  }
  return end
}

/** Letters, digits, `-`, `.`, `_` and `~`. */
function isZoneUnit(unit: number): boolean {
  if (unit >= 0x30 && unit <= 0x39) return true
  const letter = unit | 0x20
  return (letter >= 0x61 && letter <= 0x7a) || unit === 0x2d || unit === 0x2e || unit === 0x5f || unit === 0x7e
}

function hexDigit(unit: number): number {
  if (unit >= 0x30 && unit <= 0x39) return unit - 0x30
  const letter = unit | 0x20
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1
}

/** The texts of 0 to 255: converting numbers is slow, and this runs for each request. */
const decimals = Array.from({ length: 256 }, (_, octet) => octet.toString())
const hexes = Array.from({ length: 256 }, (_, octet) => octet.toString(16))
const paddedHexes = hexes.map((hex) => hex.padStart(2, '0'))

/**
 * The canonical text of an address: IPv4 in dotted decimal; IPv6 in lower case, without leading zeros, the longest run of zeros as `::`. A
 * new string, which does not retain the header it was parsed from.
 *
 * Source: RFC 5952, section 4.
 */
export function ipText(address: IpAddress): string {
  return isIpv4(address) ? ipv4Text(address.d) : ipv6Text(address)
}

function ipv4Text(word: number): string {
  return `${decimals[word >>> 24]}.${decimals[(word >>> 16) & 255]}.${decimals[(word >>> 8) & 255]}.${decimals[word & 255]}`
}

function ipv6Text(address: IpAddress): string {
  let gapAt = -1
  let gap = 1
  for (let i = 0; i < 8; i++) {
    let run = 0
    while (i + run < 8 && group(address, i + run) === 0) run++
    if (run > gap) {
      gapAt = i
      gap = run
    }
    i += run
  }
  let text = ''
  for (let i = 0; i < 8; i++) {
    if (i === gapAt) {
      text += '::'
      i += gap - 1
    } else {
      if (i > 0 && i !== gapAt + gap) text += ':'
      text += groupText(group(address, i))
    }
  }
  return text
}

function group({ a, b, c, d }: IpAddress, i: number): number {
  const word = i < 4 ? (i < 2 ? a : b) : i < 6 ? c : d
  return i % 2 === 0 ? word >>> 16 : word & 0xffff
}

function groupText(group: number): string {
  return group < 256 ? (hexes[group] as string) : (hexes[group >>> 8] as string) + paddedHexes[group & 255]
}

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
