import { forwardedElement, forwardedForList, type HopList, singleAddress } from './hop-list.js'
import { type IpAddress, type IpNetwork, isIn, parsedAddress } from './ip-address.js'

/** Longer chains of proxies are taken for junk: this bounds the work for a header. */
export const MOST_HOPS = 32

/** Why a request is counted by an address nearer than the client's: the last one that a trusted proxy vouches for. */
export type FallbackReason =
  /** The header, or an element of it, is missing: the request bypassed a proxy. */
  | 'missing'
  /** An element has no address: `unknown`, an obfuscated identifier, or junk. */
  | 'unreadable'
  /** More than 32 trusted proxies in a row. */
  | 'endless'

/** The syntax of the list in a header, by its lower-case name. */
export function hopListOf(header: string): HopList {
  if (header === 'x-forwarded-for') return forwardedForList
  return header === 'forwarded' ? forwardedElement : singleAddress
}

/** Where a client's address is looked for. */
export interface Trail {
  /** The address of the socket. */
  readonly socket: string | undefined
  /** The value of the header, and the syntax of its list. */
  readonly text: string | undefined
  readonly list: HopList
  /** Called when the client's own address is not found. */
  readonly fallback: (reason: FallbackReason) => void
}

/** The address `hops` elements from the right, else the furthest readable one on the way. */
export function clientBehindHops(trail: Trail, hops: number): IpAddress | undefined {
  const { text, list, fallback } = trail
  if (text === undefined || text.length === 0) {
    fallback('missing')
    return socketAddress(trail)
  }
  let start = text.length + 1
  for (let hop = 1; hop <= hops; hop++) {
    const end = start - 1
    start = end < 0 ? -1 : list.startOf(text, end)
    if (start < 0) {
      fallback(end < 0 ? 'missing' : 'unreadable')
      return furthestReadable(trail, text, hop - 1)
    }
    if (hop < hops) continue
    const client = list.addressIn(text, start, end)
    if (client !== undefined) return client
  }
  fallback('unreadable')
  return furthestReadable(trail, text, hops - 1)
}

/** Of the first `hops` elements from the right. Separate, so that for an ordinary request only one element is parsed. */
function furthestReadable(trail: Trail, text: string, hops: number): IpAddress | undefined {
  const { list } = trail
  let address = socketAddress(trail)
  let end = text.length
  for (let hop = 1; hop <= hops; hop++) {
    const start = list.startOf(text, end)
    address = list.addressIn(text, start, end) ?? address
    end = start - 1
  }
  return address
}

/** The first address from the right that is in none of the networks; if all are, the furthest. */
export function clientBehindNetworks(trail: Trail, networks: readonly IpNetwork[]): IpAddress | undefined {
  const { text, list, fallback } = trail
  let address = socketAddress(trail)
  let end = text === undefined || text.length === 0 ? -1 : text.length
  for (let hop = 0; hop < MOST_HOPS; hop++) {
    if (address === undefined || !isTrusted(networks, address)) return address
    if (text === undefined || end < 0) {
      if (hop === 0) fallback('missing')
      return address
    }
    const start = list.startOf(text, end)
    const found: IpAddress | undefined = start < 0 ? undefined : list.addressIn(text, start, end)
    if (found === undefined) {
      fallback('unreadable')
      return address
    }
    address = found
    end = start - 1
  }
  fallback('endless')
  return socketAddress(trail)
}

export function socketAddress({ socket }: Pick<Trail, 'socket'>): IpAddress | undefined {
  return socket === undefined ? undefined : parsedAddress(socket)
}

function isTrusted(networks: readonly IpNetwork[], address: IpAddress): boolean {
  for (const network of networks) if (isIn(network, address)) return true
  return false
}
