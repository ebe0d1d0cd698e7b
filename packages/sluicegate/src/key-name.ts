import { checkKey } from './arguments.js'
import type { Key } from './limiter.js'

/**
 * One string for each key, no two the same: a single key never looks like several.
 *
 * @throws {PolicyError} `KEY_INVALID` for what is neither a string nor an array of strings. Their length is not checked.
 */
export function nameOf(key: Key): string {
  if (typeof key === 'string') return `1${key}`
  if (!Array.isArray(key)) checkKey(key)
  for (const own of key) if (typeof own !== 'string') checkKey(own)
  return `n${JSON.stringify(key)}`
}

/** The single keys that a key stands for, each once. */
export function partsOf(key: Key): Iterable<string> {
  return typeof key === 'string' ? [key] : new Set(key)
}
