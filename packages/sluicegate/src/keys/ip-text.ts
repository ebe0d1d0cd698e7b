import { type IpAddress, isIpv4 } from './ip-address.js'

/** The texts of 0 to 255: numbers are slow to turn into text, and this runs once a request. */
const decimals = Array.from({ length: 256 }, (_, octet) => octet.toString())
const hexes = Array.from({ length: 256 }, (_, octet) => octet.toString(16))
const paddedHexes = hexes.map((hex) => hex.padStart(2, '0'))

/**
 * The one text of an address: IPv4 as four decimal numbers, IPv6 in lower case, without leading zeros, the longest run of zeros as `::`.
 * It is made anew and holds on to no header that the address was read from.
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
