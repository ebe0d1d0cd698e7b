import { forwardedElement } from './forwarded.js'
import { type IpAddress, LONGEST_ADDRESS } from './ip-address.js'
import { identifiedAddress } from './node-identifier.js'

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
