/** A bare item; undefined for types that rate limit fields do not have. A decimal is not one of their integers. */
export type BareItem = string | number | boolean | Token | Decimal | ByteSequence | undefined

/** An unquoted word, which is not a string. */
export class Token {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

/** A number with a decimal point, also `5.0`. */
export class Decimal {
  readonly value: number

  constructor(value: number) {
    this.value = value
  }
}

/** A byte sequence, in base64 without the colons. */
export class ByteSequence {
  readonly base64: string

  constructor(base64: string) {
    this.base64 = base64
  }
}

/** An item with its parameters, the last of each name; or an inner list, without its content. */
export interface StructuredItem {
  readonly value: BareItem
  readonly parameters: ReadonlyMap<string, BareItem>
}

const MOST_CHARACTERS = 8_192
const MOST_MEMBERS = 64

const KEY = /[a-z*][a-z0-9_\-.*]{0,63}/y
const TOKEN = /[A-Za-z*][!#$%&'*+\-.^_`|~0-9A-Za-z:/]{0,255}/y
const NUMBER = /-?\d{1,15}(?:\.\d{1,3})?/y
const STRING = /"(?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\]){0,1024}"/y
const BYTES = /:(?:[A-Za-z0-9+/]{4}){0,256}(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?:/y
const BOOLEAN = /\?[01]/y
const DATE = /@-?\d{1,15}/y
const DISPLAY_STRING = /%"(?:[\x20\x21\x23\x24\x26-\x7e]|%[0-9a-f]{2}){0,1024}"/y
const SPACES = / {0,64}/y
const BLANKS = /[ \t]{0,64}/y

/**
 * Parses a list; undefined for anything else, and for an overlong one. Dates, display strings and inner lists, which rate limit fields do
 * not have, are skipped.
 *
 * Source: RFC 9651, section 4.2.
 */
export function structuredList(text: string): StructuredItem[] | undefined {
  return new FieldReader(text).members((reader) => reader.member())
}

/** Parses a dictionary in the same way. */
export function structuredDictionary(text: string): ReadonlyMap<string, StructuredItem> | undefined {
  const members = new FieldReader(text).members((reader): [string, StructuredItem] => {
    const key = reader.expected(KEY)
    return [key, reader.skip('=') ? reader.member() : { value: true, parameters: reader.parameters() }]
  })
  return members && new Map(members)
}

/** Thrown and caught in this file. */
class Malformed extends Error {}

class FieldReader {
  private readonly text: string
  private at = 0

  constructor(text: string) {
    this.text = text
  }

  members<Member>(read: (reader: this) => Member): Member[] | undefined {
    if (this.text.length > MOST_CHARACTERS) return undefined
    try {
      const members: Member[] = []
      this.matched(SPACES)
      for (;;) {
        members.push(read(this))
        this.matched(BLANKS)
        if (this.at === this.text.length) return members
        if (!this.skip(',') || members.length === MOST_MEMBERS) return undefined
        this.matched(BLANKS)
      }
    } catch (error) {
      if (error instanceof Malformed) return undefined
      throw error
    }
  }

  member(): StructuredItem {
    return { value: this.skip('(') ? this.innerList() : this.bareItem(), parameters: this.parameters() }
  }

  parameters(): ReadonlyMap<string, BareItem> {
    const parameters = new Map<string, BareItem>()
    while (this.skip(';')) {
      this.matched(SPACES)
      const key = this.expected(KEY)
      parameters.set(key, this.skip('=') ? this.bareItem() : true)
    }
    return parameters
  }

  skip(character: string): boolean {
    if (this.text[this.at] !== character) return false
    this.at++
    return true
  }

  expected(pattern: RegExp): string {
    const text = this.matched(pattern)
    if (text === undefined) throw new Malformed()
    return text
  }

  /** Reads up to its end. */
  private innerList(): undefined {
    for (;;) {
      this.matched(SPACES)
      if (this.skip(')')) return
      this.bareItem()
      this.parameters()
      const next = this.text[this.at]
      if (next !== ' ' && next !== ')') throw new Malformed()
    }
  }

  private bareItem(): BareItem {
    switch (this.text[this.at]) {
      case '"':
        return this.expected(STRING).slice(1, -1).replace(/\\(.)/g, '$1')
      case ':':
        return new ByteSequence(this.expected(BYTES).slice(1, -1))
      case '?':
        return this.expected(BOOLEAN) === '?1'
      case '@':
        this.expected(DATE)
        return undefined
      case '%':
        this.expected(DISPLAY_STRING)
        return undefined
    }
    const number = this.matched(NUMBER)
    if (number === undefined) return new Token(this.expected(TOKEN))
    return number.includes('.') ? new Decimal(Number(number)) : Number(number)
  }

  private matched(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at
    const found = pattern.exec(this.text)?.[0]
    if (found !== undefined) this.at += found.length
    return found
  }
}
