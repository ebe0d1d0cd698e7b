import { type IpAddress, LONGEST_ADDRESS, parsedAddress } from './ip-address.js'

/**
 * How a header lists hops, the nearest last. Lists are read from the right, where your own proxies append; what a client sent is to the
 * left and is not read.
 */
export interface HopList {
  /** The start of the element that ends at `end`; -1 if it is too long for one. */
  startOf(text: string, end: number): number
  /** The address in the element from `start` to `end`. */
  addressIn(text: string, start: number, end: number): IpAddress | undefined
}

/** An address with white space, brackets and a port. */
const LONGEST_ELEMENT = LONGEST_ADDRESS + 20

/** `X-Forwarded-For`: addresses and commas. An empty element is a hop: a proxy may write it for a client that it does not know. */
export const forwardedForList: HopList = {
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

/** A header with one address. A list is not an address: the client sent a header before the proxy did. */
export const singleAddress: HopList = {
  startOf: (_, end) => (end > LONGEST_ELEMENT ? -1 : 0),
  addressIn: forwardedForList.addressIn,
}

function isBlank(unit: number): boolean {
  return unit === 0x20 || unit === 0x09
}

const MOST_PORT_DIGITS = 5

/**
 * The address in a proxy's identifier of its client: an address, `1.2.3.4:567`, `[2001:db8::1]` or `[2001:db8::1]:4711`. Ports are dropped,
 * also obfuscated ones (`:_web`). Undefined for `unknown`, obfuscated identifiers (`_gazonk`), and anything else.
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
  // IPv6 without brackets has no port: what precedes a port has no colon.
  for (let i = start; i < end; i++) {
    if (text.charCodeAt(i) === 0x3a) return isPort(text, i, end) ? parsedAddress(text, start, i) : undefined
  }
  return undefined
}

/** Whether a colon and a port follow: up to five digits, or an obfuscated port. */
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

// The header `Forwarded`. Elements are found from the right, across quoted strings, so that a quote that a client left open cannot swallow
// what proxies appended; each element is then parsed from its left by the grammar.
//
// Source: RFC 7239, section 4; RFC 9110, sections 5.6.2 to 5.6.4 for tokens and quoted strings.

/** An element also has the requested host, and what else proxies add. */
const LONGEST_FORWARDED = 1024
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Visible ASCII without delimiters. */
const tokenUnits = Uint8Array.from({ length: 0x7f }, (_, unit) =>
  unit > 0x20 && !'"(),/:;<=>?@[\\]{}'.includes(String.fromCharCode(unit)) ? 1 : 0,
)

export const forwardedElement: HopList = {
  startOf(text, end) {
    const least = Math.max(0, end - LONGEST_FORWARDED)
    let quoted = false
    for (let i = end - 1; i >= least; i--) {
      const unit = text.charCodeAt(i)
      if (unit === QUOTE) quoted = quoted ? isEscaped(text, i, least) : true
      else if (unit === 0x2c && !quoted) return i + 1
    }
    return least === 0 ? 0 : -1
  },
  addressIn: forAddress,
}

/**
 * The address of the single parameter `for` of the element. Undefined if it is obfuscated, `unknown`, absent or repeated, or if there is no
 * such element.
 */
function forAddress(text: string, start: number, end: number): IpAddress | undefined {
  let address: IpAddress | undefined
  let found = false
  let i = pairFrom(text, start, end)
  while (i < end) {
    const nameEnd = tokenEnd(text, i, end)
    if (nameEnd === i || text.charCodeAt(nameEnd) !== 0x3d) return undefined
    const isFor = nameEnd - i === 3 && isForAt(text, i)
    if (isFor && found) return undefined
    const valueStart = nameEnd + 1
    const isQuoted = valueStart < end && text.charCodeAt(valueStart) === QUOTE
    const valueEnd = isQuoted ? closingQuote(text, valueStart, end) : plainEnd(text, valueStart, end)
    if (valueEnd < 0 || valueEnd === valueStart) return undefined
    if (isFor) {
      found = true
      address = isQuoted ? quotedAddress(text, valueStart + 1, valueEnd) : identifiedAddress(text, valueStart, valueEnd)
    }
    i = blanksFrom(text, isQuoted ? valueEnd + 1 : valueEnd, end)
    if (i === end) break
    if (text.charCodeAt(i) !== 0x3b) return undefined
    i = pairFrom(text, i + 1, end)
  }
  return address
}

/** The start of the next parameter; empty parameters are skipped. */
function pairFrom(text: string, start: number, end: number): number {
  let i = blanksFrom(text, start, end)
  while (i < end && text.charCodeAt(i) === 0x3b) i = blanksFrom(text, i + 1, end)
  return i
}

function quotedAddress(text: string, start: number, end: number): IpAddress | undefined {
  for (let i = start; i < end; i++) {
    if (text.charCodeAt(i) !== BACKSLASH) continue
    const plain = text.slice(start, end).replace(/\\(.)/g, '$1')
    return identifiedAddress(plain, 0, plain.length)
  }
  return identifiedAddress(text, start, end)
}

function isForAt(text: string, at: number): boolean {
  return (text.charCodeAt(at) | 32) === 0x66 && (text.charCodeAt(at + 1) | 32) === 0x6f && (text.charCodeAt(at + 2) | 32) === 0x72
}

/** Whether an odd number of backslashes precedes the quote. */
function isEscaped(text: string, at: number, least: number): boolean {
  let i = at - 1
  while (i >= least && text.charCodeAt(i) === BACKSLASH) i--
  return (at - 1 - i) % 2 === 1
}

function closingQuote(text: string, open: number, end: number): number {
  for (let i = open + 1; i < end; i++) {
    const unit = text.charCodeAt(i)
    if (unit === QUOTE) return i
    if (unit === BACKSLASH) i++
  }
  return -1
}

/**
 * The end of an unquoted value. The grammar allows a token; addresses with colons and brackets are accepted, too, as some proxies do not
 * quote them.
 */
function plainEnd(text: string, start: number, end: number): number {
  let i = start
  while (i < end && (isTokenUnit(text.charCodeAt(i)) || isAddressUnit(text.charCodeAt(i)))) i++
  return i
}

function tokenEnd(text: string, start: number, end: number): number {
  let i = start
  while (i < end && isTokenUnit(text.charCodeAt(i))) i++
  return i
}

function blanksFrom(text: string, start: number, end: number): number {
  let i = start
  while (i < end && (text.charCodeAt(i) === 0x20 || text.charCodeAt(i) === 0x09)) i++
  return i
}

function isTokenUnit(unit: number): boolean {
  return tokenUnits[unit] === 1
}

/** Colons and brackets. */
function isAddressUnit(unit: number): boolean {
  return unit === 0x3a || unit === 0x5b || unit === 0x5d
}
