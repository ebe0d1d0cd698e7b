import { forwardedElement } from './forwarded.js'
import { type IpAddress, LONGEST_ADDRESS, parsedAddress } from './ip-address.js'

/**
 * How a header lists hops, the nearest last. Lists are read from the right, where the proxies of one's own have written: whatever a
 * client sent stands to the left of that and is not looked at.
 */
export interface HopList {
  /** Where the element that ends at `end` begins, or -1 where it is too long to be one. */
  startOf(text: string, end: number): number
  /** The address in the element from `start` to `end`. */
  addressIn(text: string, start: number, end: number): IpAddress | undefined
}

/** With white space, brackets and a port. */
const LONGEST_ELEMENT = LONGEST_ADDRESS + 20

/** `X-Forwarded-For`: addresses and commas. An empty element counts as a hop: it may be what a proxy wrote of a client it did not know. */
const addressList: HopList = {
  startOf(text, end) {
    const least = Math.max(0, end - LONGEST_ELEMENT)
    for (let i = end - 1; i >= least; i--) if (text.charCodeAt(i) === 0x2c) return i + 1
    return least === 0 ? 0 : -1
  },
  addressIn(text, start, end) {
    let first = start
    let last = end
    while (first < last && isBlank(text.charCodeAt(first))) first++
    while (first < last && isBlank(text.charCodeAt(last - 1))) last--
    return identifiedAddress(text, first, last)
  },
}

/** A header with one address. Several are no address: somebody sent one before the proxy did. */
const singleAddress: HopList = {
  startOf: (_, end) => (end > LONGEST_ELEMENT ? -1 : 0),
  addressIn: addressList.addressIn,
}

/** The list in the header of a lower-case name. */
export function hopListOf(header: string): HopList {
  if (header === 'x-forwarded-for') return addressList
  return header === 'forwarded' ? forwardedElement : singleAddress
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x09
}

const MOST_PORT_DIGITS = 5

/**
 * The address in what a proxy writes down of its client: an address, `1.2.3.4:567`, `[2001:db8::1]` or `[2001:db8::1]:4711`. Ports are
 * dropped, obfuscated ones (`:_web`) too. Undefined for `unknown`, for identifiers that hide one (`_gazonk`), and for anything else.
 *
 * Source: RFC 7239, section 6.
 */
export function identifiedAddress(text: string, start: number, end: number): IpAddress | undefined {
  if (text.charCodeAt(start) === 0x5b) {
    for (let i = start + 1; i < end; i++) {
      if (text.charCodeAt(i) !== 0x5d) continue
      if (i + 1 < end && !isPort(text, i + 1, end)) return undefined
      return hasColon(text, start + 1, i) ? parsedAddress(text, start + 1, i) : undefined
    }
    return undefined
  }
  const address = parsedAddress(text, start, end)
  if (address !== undefined) return address
  // IPv6 without brackets has no port: what stands before one has no colon itself.
  for (let i = start; i < end; i++) {
    if (text.charCodeAt(i) === 0x3a) return isPort(text, i, end) ? parsedAddress(text, start, i) : undefined
  }
  return undefined
}

/** Whether a colon and a port follow: up to five digits, or an underscore and what is allowed behind it. */
function isPort(text: string, at: number, end: number): boolean {
  if (text.charCodeAt(at) !== 0x3a || at + 1 >= end) return false
  if (text.charCodeAt(at + 1) === 0x5f) {
    for (let i = at + 2; i < end; i++) if (!isHiddenUnit(text.charCodeAt(i))) return false
    return at + 2 < end
  }
  if (end - at - 1 > MOST_PORT_DIGITS) return false
  for (let i = at + 1; i < end; i++) if (text.charCodeAt(i) < 0x30 || text.charCodeAt(i) > 0x39) return false
  return true
}

/** Letters, digits, `.`, `_` and `-`. */
function isHiddenUnit(unit: number): boolean {
  if (unit >= 0x30 && unit <= 0x39) return true
  const letter = unit | 0x20
  return (letter >= 0x61 && letter <= 0x7a) || unit === 0x2e || unit === 0x5f || unit === 0x2d
}

function hasColon(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (text.charCodeAt(i) === 0x3a) return true
  return false
}
