import { PolicyError } from '../errors.js'
import { JOINT } from '../policy/stored-name.js'

/** The hash tag of keys: one text for all, or a function of the key. */
export type HashTag = string | ((key: string) => string)

const MOST_PREFIX = 100

/**
 * Keys in Redis: `<prefix>:<encoding>:<policy>:{<key>}`, of a level `<whole>:<level>` for the policy. The text in braces decides the hash slot, so one key is on one server under all
 * policies.
 *
 * Distinct keys and names stay distinct. Escaped are `%`, lone surrogates (which UTF-8 cannot distinguish), `:` and braces in names, and in
 * keys what would end the tag.
 */
export class RedisKeys {
  private readonly prefix: string
  private readonly hashTag: HashTag | undefined

  /** @throws {PolicyError} `OPTION_INVALID` */
  constructor(prefix: unknown, hashTag?: unknown) {
    if (typeof prefix !== 'string' || prefix.length === 0 || prefix.length > MOST_PREFIX) {
      throw new PolicyError('OPTION_INVALID', 'prefix', prefix, `must be a string of 1 to ${MOST_PREFIX} characters`)
    }
    if (hashTag !== undefined && typeof hashTag !== 'function' && !isTag(hashTag)) throw invalidTag(hashTag)
    this.prefix = escaped(prefix, IN_NAMES)
    this.hashTag = hashTag as HashTag | undefined
  }

  /** The beginning of all keys of an account. @param name as it is stored, see `storedNames`. */
  before(form: string, name: string): string {
    return `${this.prefix}:${form}:${escaped(name, IN_NAMES).replace(JOINT, ':')}:`
  }

  /** The end of a key's names. */
  after(key: string): string {
    const own = escaped(key, IN_KEYS)
    return this.hashTag === undefined ? `{${own}}` : `{${escaped(this.tagOf(key), IN_KEYS)}}${own}`
  }

  /** The hashed part of a key's names. */
  hashedOf(key: string): string {
    return escaped(this.tagOf(key), IN_KEYS)
  }

  /**
   * The hash tag of a key.
   *
   * @throws {PolicyError} `OPTION_INVALID` when the function returns none or throws; `cause` is then what it threw.
   */
  tagOf(key: string): string {
    const { hashTag } = this
    if (hashTag === undefined) return key
    if (typeof hashTag === 'string') return hashTag
    const tag = given(hashTag, key)
    if (!isTag(tag)) throw invalidTag(tag)
    return tag
  }
}

const IN_NAMES = /[%:{}]|\p{Surrogate}/gu
const IN_KEYS = /[%}]|\p{Surrogate}/gu

/** The test costs a fifth of the replacement, and nearly all keys need none. */
function escaped(text: string, what: RegExp): string {
  if (text.search(what) === -1) return text
  return text.replace(what, (character) => `%${character.charCodeAt(0).toString(16)}.`)
}

function isTag(tag: unknown): tag is string {
  return typeof tag === 'string' && tag.length > 0
}

function given(hashTag: (key: string) => unknown, key: string): unknown {
  try {
    return hashTag(key)
  } catch (cause) {
    throw new PolicyError('OPTION_INVALID', 'hashTag', hashTag, 'threw: it must give a tag for every key', { cause })
  }
}

function invalidTag(tag: unknown): PolicyError {
  return new PolicyError(
    'OPTION_INVALID',
    'hashTag',
    tag,
    'must be a string of at least one character, or a function that gives one for each key',
  )
}

const SLOTS = 16_384
/** CRC-16/XMODEM of each byte: x^16 + x^12 + x^5 + 1, most significant bit first. */
const TABLE = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
  return crc
})
const utf8 = new TextEncoder()

/**
 * The hash slot of a Redis Cluster that a key or hash tag belongs to, 0 to 16383.
 *
 * Source: Redis cluster specification, "Key distribution model".
 */
export function hashSlot(tag: string): number {
  let crc = 0
  for (const byte of utf8.encode(tag)) crc = ((crc << 8) & 0xffff) ^ (TABLE[(crc >> 8) ^ byte] as number)
  return crc % SLOTS
}
