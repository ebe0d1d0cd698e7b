import type { Key } from './limiter.js'

/** One string for each key, no two the same: a single key never looks like several. */
export function nameOf(key: Key): string {
  return typeof key === 'string' ? `1${key}` : `n${JSON.stringify(key)}`
}

/** The single keys that a key stands for, each once. */
export function partsOf(key: Key): Iterable<string> {
  return typeof key === 'string' ? [key] : new Set(key)
}
