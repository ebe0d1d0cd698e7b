import type { Decision } from '../decision/decision.js'
import { RateDecoder } from '../decision/decision-decoder.js'
import { StoreError } from '../errors.js'
import { keysFor } from '../key.js'
import type { Key, Limiter } from '../limiter.js'
import { pairedPolicies } from '../policy/paired-policies.js'
import type { MemoryLimiter } from './memory-limiter.js'

/**
 * Brings a key to the limiter that decides about it from now on, from others that did before: what the key had spent there is spent here, and its
 * block goes along. As after {@link Limiter.update}, of a smaller burst no more than that is spent. Nothing happens to a key that is there already.
 *
 * Policies of an `allOf` go by their names, those without given ones by their numbers, then by their algorithms, and in their order where no name is on both sides. Between two algorithms the number of tokens is
 * carried. What is held goes along, see {@link Limiter.open}, and what is given back of an earlier charge finds the key in this thread. Permits stay where they were taken. All limiters are plain ones in memory, of one clock; others are passed over.
 *
 * @returns whether there was anything to carry.
 * @example
 * const larger = createLimiter(tokenBucket({ limit: 100, window: '1m' }))
 * carryKey([limiter], larger, 'user:42')
 */
export function carryKey(from: Iterable<Limiter>, to: Limiter, key: Key): boolean {
  const targets = partsOf(to)
  if (targets === undefined) return false
  let isCarried = false
  const policies = targets.map((target) => target.policyOf())
  for (const [i, target] of targets.entries()) {
    const own = keyOf(targets, key, i)
    if (target.hasKey(own)) continue
    const sources: MemoryLimiter[] = []
    for (const each of from) {
      const parts = partsOf(each) ?? []
      const at = pairedPolicies(
        parts.map((part) => part.policyOf()),
        policies,
      )[i]
      if (at !== undefined) sources.push(parts[at] as MemoryLimiter)
    }
    if (carryPart(sources, target, own)) isCarried = true
  }
  return isCarried
}

/** {@link carryKey} of one policy, for a key that is not there. */
export function carryPart(sources: readonly MemoryLimiter[], target: MemoryLimiter, key: string): boolean {
  const left = new Map<MemoryLimiter, boolean>()
  for (const source of sources) {
    const isWhole = carried(source, target, key)
    if (isWhole !== undefined) left.set(source, isWhole)
  }
  // What the last one brought may be forgiven of what came before it.
  const isWhole = [...left.values()].every(Boolean)
  for (const source of left.keys()) source.moved(key, target, isWhole)
  return left.size > 0
}

/** Whether a key is in the limiter already, under all of its policies; true where it cannot be carried. */
export function holdsKey(limiter: Limiter, key: Key): boolean {
  const parts = partsOf(limiter)
  return parts === undefined || parts.every((part, i) => part.hasKey(keyOf(parts, key, i)))
}

/**
 * Whole tokens that a key has spent under a limiter in memory, without what is held for open work; of an `allOf` those of the policy with the most. 0
 * for a limiter whose keys {@link carryKey} passes over.
 *
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1m' }))
 * limiter.take('ada', 3)
 * tokensSpent(limiter, 'ada') // 3
 */
export function tokensSpent(limiter: Limiter, key: Key): number {
  const parts = partsOf(limiter) ?? []
  return Math.max(0, ...parts.map((part, i) => spentIn(part, part.peekAlone(keyOf(parts, key, i)))))
}

/** Whole tokens that a key has left under each policy of a limiter in memory, whatever is held. */
export function leftAlone(limiter: Limiter, key: Key): readonly number[] {
  const parts = partsOf(limiter) ?? []
  return parts.map((part, i) => part.peekAlone(keyOf(parts, key, i)).remaining)
}

function spentIn(part: MemoryLimiter, { spent, remaining }: Decision): number {
  return spent ?? part.policyOf().burst - remaining
}

function keyOf(parts: readonly MemoryLimiter[], key: Key, i: number): string {
  return parts.length === 1 && typeof key === 'string' ? key : (keysFor(parts.length, key)[i] as string)
}

/** Of a limiter in memory one for each policy. */
function partsOf(limiter: Limiter): readonly MemoryLimiter[] | undefined {
  return (limiter as Limiter & { readonly keyParts?: readonly MemoryLimiter[] }).keyParts
}

/** Whether all that a key had spent went along; undefined where nothing did. */
function carried(source: MemoryLimiter, target: MemoryLimiter, key: string): boolean | undefined {
  const { algorithm } = source.policyOf()
  if (source === target || algorithm === 'concurrency' || target.policyOf().algorithm === 'concurrency') return undefined
  const bytes = source.saveKey(key, true)
  if (bytes === undefined) return undefined
  try {
    const isWhole = wholeness(source, target, key, bytes)
    const isSame = target.loadKey(key, bytes)
    // Of another algorithm it is what it has spent.
    if (!isSame) target.carryIn(key, bytes, source)
    return isSame && isWhole()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    // No room there: as a new key it is denied, or shares a budget. It stays where it was.
    source.loadKey(key, bytes)
    return undefined
  }
}

/** Asks before saved bytes are loaded, and answers after it, whether nothing of what the key had spent was forgiven. */
function wholeness(source: MemoryLimiter, target: MemoryLimiter, key: string, bytes: Uint8Array): () => boolean {
  const added = source.spentInSaved(bytes)
  if (added === 0) return () => false
  const spent = added + spentIn(target, target.peekAlone(key))
  // A debt is carried up to the burst. Of a window each count is, which shows afterwards.
  const fits = spent <= target.policyOf().burst
  return () => (target.decisions.decoder instanceof RateDecoder ? fits : spentIn(target, target.peekAlone(key)) >= spent)
}
