import { checkKey, isKey, KEY_WORDS } from '../arguments.js'
import { PolicyError } from '../errors.js'
import type { Key, KeyList } from '../limiter.js'

/** The form that is posted to another thread; functions cannot be posted. */
export type PostedKeyList = ReadonlySet<string> | 'function'

/** A {@link KeyList} made ready: `has` answers, `posted` travels. */
export interface PreparedKeyList {
  has(key: string): boolean
  readonly posted: PostedKeyList
}

/** The allow and deny list of a limiter. */
export interface KeyLists {
  readonly allow: PreparedKeyList
  readonly deny: PreparedKeyList
  /** Keys per call under `allOf`; otherwise undefined. */
  readonly keys: number | undefined
}

/**
 * The list that holds a key. Several keys are denied if one of them is on the deny list, and allowed if all are on the allow list.
 *
 * @throws {PolicyError} `KEY_INVALID`
 */
export function verdictOn(key: Key, { allow, deny, keys }: KeyLists): 'allow' | 'deny' | undefined {
  if (typeof key === 'string' || !Array.isArray(key)) {
    checkKey(key)
    return deny.has(key as string) ? 'deny' : allow.has(key as string) ? 'allow' : undefined
  }
  // As many keys as there are policies, or the limiter within refuses them.
  if (key.length !== keys) return undefined
  key.forEach(checkKey)
  return key.some(deny.has) ? 'deny' : key.every(allow.has) ? 'allow' : undefined
}

/** The key for which a call is denied by {@link verdictOn}. */
export function culpritIn(key: Key, { deny }: KeyLists): string {
  return typeof key === 'string' ? key : (key.find(deny.has) ?? '')
}

/** @throws {PolicyError} `OPTION_INVALID`, or `KEY_INVALID` for a key that no call takes. */
export function preparedKeyList(list: KeyList | undefined, option: 'allow' | 'deny'): PreparedKeyList {
  if (typeof list === 'function') return { has: (key) => asked(list, key, option), posted: 'function' }
  const keys = new Set<string>()
  for (const key of list === undefined ? [] : checkedIterable(list, option)) {
    if (typeof key !== 'string') throw new PolicyError('OPTION_INVALID', option, key, 'must hold strings only')
    if (!isKey(key)) throw new PolicyError('KEY_INVALID', option, key, `must hold strings ${KEY_WORDS}`)
    keys.add(key)
  }
  return { has: (key) => keys.has(key), posted: keys }
}

/**
 * The list in the thread that it was posted to, unless that thread has its own.
 *
 * @throws {PolicyError} `OPTION_INVALID` when it is a function and was not given again.
 */
export function travelledKeyList(
  own: KeyList | undefined,
  posted: PostedKeyList | undefined,
  option: 'allow' | 'deny',
): KeyList | undefined {
  if (own !== undefined) return own
  if (posted === 'function') throw new PolicyError('OPTION_INVALID', option, own, 'is a function, which does not travel: pass it again')
  return posted
}

function asked(list: (key: string) => boolean, key: string, option: string): boolean {
  const answer: unknown = list(key)
  // A promise would always count as true.
  if (typeof answer !== 'boolean') throw new PolicyError('OPTION_INVALID', option, answer, 'must return true or false, at once')
  return answer
}

function checkedIterable(list: unknown, option: string): Iterable<unknown> {
  // A string would be a list of its characters.
  if (typeof list === 'object' && list !== null && Symbol.iterator in list) return list as Iterable<unknown>
  throw new PolicyError('OPTION_INVALID', option, list, 'must be an iterable of keys, such as an array or a set, or a function of a key')
}
