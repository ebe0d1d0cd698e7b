import { PolicyError } from '../errors.js'

/** What keys of one hash slot have in common: one text for all, or what a function says of each. */
export type HashTag = string | ((key: string) => string)

const MOST_PREFIX = 100

/**
 * Names in the store: `<prefix>:<form>:<policy>:{<key>}` for all that a policy knows of a key. What stands between the braces decides the hash
 * slot: one key is on one server under all policies, and others elsewhere.
 *
 * No key or name is taken for another: escaped are `%`, lone surrogates, which UTF-8 does not tell apart, in names `:` and braces, and in
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

  /** What names of a policy begin with. */
  before(form: string, policy: string): string {
    return `${this.prefix}:${form}:${escaped(policy, IN_NAMES)}:`
  }

  /** What names of a key end with. */
  after(key: string): string {
    const own = escaped(key, IN_KEYS)
    return this.hashTag === undefined ? `{${own}}` : `{${escaped(this.tagOf(key), IN_KEYS)}}${own}`
  }

  /** What of a key's names is hashed. */
  hashedOf(key: string): string {
    return escaped(this.tagOf(key), IN_KEYS)
  }

  /**
   * What decides the slot of a key.
   *
   * @throws {PolicyError} `OPTION_INVALID` when the caller's function gives none, or throws; its `cause` is then what it threw.
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

/** To look first costs a fifth, and nearly all stays as it is. */
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
