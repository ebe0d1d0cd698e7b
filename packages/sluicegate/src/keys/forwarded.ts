import type { HopList } from './hop-list.js'
import { identifiedAddress } from './hop-list.js'
import type { IpAddress } from './ip-address.js'

// The header `Forwarded`. Elements are found from the right, across quoted strings, so that a quote that a client left open cannot swallow
// what proxies appended; each element is then parsed from its left by the grammar.
//
// Source: RFC 7239, section 4; RFC 9110, sections 5.6.2 to 5.6.4 for tokens and quoted strings.

/** An element also has the requested host, and what else proxies add. */
const LONGEST_ELEMENT = 1024
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Visible ASCII without delimiters. */
const tokenUnits = Uint8Array.from({ length: 0x7f }, (_, unit) =>
  unit > 0x20 && !'"(),/:;<=>?@[\\]{}'.includes(String.fromCharCode(unit)) ? 1 : 0,
)

export const forwardedElement: HopList = {
  startOf(text, end) {
    const least = Math.max(0, end - LONGEST_ELEMENT)
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
