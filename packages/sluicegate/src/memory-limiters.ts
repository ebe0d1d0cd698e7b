import { type Clock, clockFromHandle } from './clock.js'
import { createMemory, sectionAt } from './core-memory.js'
import { PolicyError } from './errors.js'
import { randomSecret } from './fingerprint.js'
import type { Limiter, LimiterHandle } from './limiter.js'
import type { MemoryLimiterParts } from './memory-decisions.js'
import { type MemoryHandle, MemoryLimiter } from './memory-limiter.js'
import { MemoryPermitLimiter } from './memory-permit-limiter.js'
import { OpenCore } from './open-core.js'
import type { Algorithm, Policy } from './policy.js'
import { numbersOf } from './policy-numbers.js'

/** What a new limiter in memory is given beside its policy. */
export interface NewMemory extends Pick<MemoryLimiterParts, 'clock' | 'hotKeys' | 'maxWaiters'> {
  readonly maxKeys: number | undefined
  readonly denyWhenFull: boolean
}

const DEFAULT_MAX_KEYS = 100_000
/** Where slots make keys large, so many bytes of them are the default's most. */
const DEFAULT_MOST_BYTES = 2 ** 30

/** A limiter in a memory of its own. */
export function newMemoryLimiter(policy: Policy, { maxKeys, denyWhenFull, ...parts }: NewMemory): Limiter {
  const { stride } = numbersOf(policy)
  const section = sectionAt(0, maxKeys ?? defaultMaxKeys(stride), stride)
  const memory = createMemory(section.end, policy.algorithm.startsWith('sliding') || policy.algorithm === 'concurrency')
  const open: MemoryLimiterParts['open'] = (host) => {
    const opened = new OpenCore(memory, section.address, host)
    opened.core.create(section.address, section.lines, denyWhenFull)
    return opened
  }
  return limiterOver({ ...parts, open, secret: randomSecret() }, policy.algorithm, policy)
}

/**
 * The limiter of a handle, in this thread.
 *
 * @throws {PolicyError} `HANDLE_INVALID`
 */
export function attachedMemoryLimiter(
  handle: LimiterHandle,
  parts: Pick<MemoryLimiterParts, 'hotKeys' | 'maxWaiters'> & { readonly clock: Clock | undefined },
  checkClock: (clock: unknown) => asserts clock is Clock,
): Limiter {
  const { sluicegate, memory, section, secret, algorithm, clock: posted } = (handle ?? {}) as Partial<MemoryHandle>
  const isWhole = secret !== undefined && posted !== undefined && section !== undefined && algorithm !== undefined
  if (sluicegate !== 1 || !(memory instanceof WebAssembly.Memory) || !isWhole) {
    throw new PolicyError('HANDLE_INVALID', 'handle', handle, 'must be what limiter.handle() gave, of this same version')
  }
  const clock: unknown = parts.clock ?? clockFromHandle(posted)
  checkClock(clock)
  return limiterOver({ ...parts, clock, secret, open: (host) => new OpenCore(memory, section, host) }, algorithm)
}

function limiterOver(parts: MemoryLimiterParts, algorithm: Algorithm, policy?: Policy): Limiter {
  return algorithm === 'concurrency' ? new MemoryPermitLimiter(parts, policy) : new MemoryLimiter(parts, policy)
}

function defaultMaxKeys(stride: number): number {
  return stride === 0 ? DEFAULT_MAX_KEYS : Math.max(1, Math.min(DEFAULT_MAX_KEYS, Math.floor(DEFAULT_MOST_BYTES / (1.45 * stride))))
}
