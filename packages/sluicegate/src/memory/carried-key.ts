import { StoreError } from '../errors.js'
import { keysFor } from '../key.js'
import type { Key, Limiter } from '../limiter.js'
import type { MemoryLimiter } from './memory-limiter.js'
import { pairedParts } from './paired-parts.js'

/** A limiter in memory, or several as one. */
interface KeyHolder {
  /** One for each policy. */
  readonly keyParts: readonly MemoryLimiter[]
}

/**
 * Brings a key to the limiter that decides about it from now on, from others that did before: what the key had spent there is spent here, and its
 * block goes along. As after {@link Limiter.update}, of a smaller burst no more than that is spent. Nothing happens to a key that is there already.
 *
 * Policies of an `allOf` go by their names, those without given ones by their algorithms, and in their order where no name is on both sides. Between two algorithms the number of tokens is
 * carried. Permits stay where they were taken. All limiters are plain ones in memory, of one clock; others are passed over.
 *
 * @returns whether there was anything to carry.
 * @example
 * const larger = createLimiter(tokenBucket({ limit: 100, window: '1m' }))
 * carryKey([limiter], larger, 'user:42')
 */
export function carryKey(from: Iterable<Limiter>, to: Limiter, key: Key): boolean {
  const targets = partsOf(to)
  if (targets === undefined) return false
  let carried = false
  const policies = targets.map((target) => target.policyOf())
  for (const [i, target] of targets.entries()) {
    const own = keyOf(targets, key, i)
    if (target.hasKey(own)) continue
    for (const each of from) {
      const source = pairedParts(partsOf(each) ?? [], policies)[i]
      if (source !== undefined && isCarried(source, target, own)) carried = true
    }
  }
  return carried
}

/** Whether a key is in the limiter already, under all of its policies; true where it cannot be carried. */
export function holdsKey(limiter: Limiter, key: Key): boolean {
  const parts = partsOf(limiter)
  return parts === undefined || parts.every((part, i) => part.hasKey(keyOf(parts, key, i)))
}

function keyOf(parts: readonly MemoryLimiter[], key: Key, i: number): string {
  return parts.length === 1 && typeof key === 'string' ? key : (keysFor(parts.length, key)[i] as string)
}

function partsOf(limiter: Limiter): readonly MemoryLimiter[] | undefined {
  return (limiter as Limiter & Partial<KeyHolder>).keyParts
}

function isCarried(source: MemoryLimiter, target: MemoryLimiter, key: string): boolean {
  const { algorithm } = source.policyOf()
  if (source === target || algorithm === 'concurrency' || target.policyOf().algorithm === 'concurrency') return false
  // What a peek shows is enough where the algorithms differ.
  const before = formOf(algorithm) === formOf(target.policyOf().algorithm) ? undefined : source.hasKey(key) ? source.peek(key) : undefined
  const bytes = source.saveKey(key, true)
  if (bytes === undefined) return false
  try {
    if (target.loadKey(key, bytes) || before === undefined) return true
    const { burst } = target.policyOf()
    const spent = Math.min(before.spent ?? source.policyOf().burst - before.remaining, burst)
    if (spent > 0) target.penalize(key, spent)
    const isBlocked = !before.allowed && (before.remaining > 0 || before.retryAfterMs > before.resetAfterMs)
    if (isBlocked) target.block(key, before.retryAfterMs)
    return true
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // No room there: as a new key it is denied, or shares a budget. It stays where it was.
    source.loadKey(key, bytes)
    return false
  }
}

/** Algorithms whose keys are saved alike. */
function formOf(algorithm: string): string {
  return algorithm === 'gcra' ? 'token-bucket' : algorithm
}
