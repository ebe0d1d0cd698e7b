import { PolicyError } from '../errors.js'
import { MOST_POLICIES } from '../policy/all-of.js'
import { isReading } from '../time/clock.js'
import { NAME_BYTES } from './all-of-policy.js'
import { SECTION_ALIGNMENT, TABLE_OFFSET } from './core-memory.js'
import type { AllOfHandle } from './memory-all-of.js'
import type { MemoryHandle } from './memory-limiter.js'
import type { OpenCore } from './open-core.js'

/**
 * The handle of a limiter in memory, or of several in one: the shapes are looked at, not what stands in the memory.
 *
 * @throws {PolicyError} `HANDLE_INVALID`
 */
export function checkedHandle(handle: unknown): MemoryHandle | AllOfHandle {
  const { sluicegate, clock, parts, name } = Object(handle) as Partial<AllOfHandle>
  const isOne =
    parts === undefined ? isPart(handle) : areParts(parts) && name instanceof SharedArrayBuffer && name.byteLength === NAME_BYTES
  if (sluicegate === 1 && isClockHandle(clock) && isOne) return handle as MemoryHandle | AllOfHandle
  throw invalidHandle(handle)
}

/** Whether a policy was put in force there: only then may the core read on. */
export function isFounded(open: OpenCore): boolean {
  return open.epoch() !== 0 && open.lines > 0 && open.firstExtensions() <= open.memory.buffer.byteLength
}

function areParts(parts: unknown): boolean {
  if (!Array.isArray(parts) || parts.length === 0 || parts.length > MOST_POLICIES || ![...parts].every(isPart)) return false
  // By their secret, which no other limiter has: where a thread is sent one memory twice, Bun gives it two that are the same.
  const { secret: own }: MemoryHandle = parts[0]
  return parts.every(({ secret }: MemoryHandle) => secret.every((word, i) => word === own[i]))
}

function isPart(part: unknown): boolean {
  const { memory, section, secret, algorithm } = Object(part) as Partial<MemoryHandle>
  return isPlaceIn(memory, section, secret) && typeof algorithm === 'string'
}

/** Whether a section may begin there in a shared memory, under a secret of two words. */
export function isPlaceIn(memory: unknown, section: unknown, secret: unknown): boolean {
  return (
    memory instanceof WebAssembly.Memory &&
    memory.buffer instanceof SharedArrayBuffer &&
    isPlace(section, memory.buffer.byteLength - TABLE_OFFSET) &&
    Array.isArray(secret) &&
    secret.length === 2 &&
    [...secret].every(Number.isInteger)
  )
}

function isPlace(section: unknown, most: number): boolean {
  return typeof section === 'number' && section >= 0 && section <= most && section % SECTION_ALIGNMENT === 0
}

/** Whether it has the shape of a clock's handle. */
export function isClockHandle(clock: unknown): boolean {
  const { kind, unixMs, monotonicMs, shared } = Object(clock) as {
    readonly [field in 'kind' | 'unixMs' | 'monotonicMs' | 'shared']?: unknown
  }
  if (kind === 'precise' || kind === 'coarse') return isReading(unixMs) && isReading(monotonicMs)
  return kind === 'custom' || kind === 'wall' || (kind === 'manual' && shared instanceof SharedArrayBuffer && shared.byteLength === 8)
}

/** What is thrown where a handle leads to no limiter. */
export function invalidHandle(handle: unknown): PolicyError {
  return new PolicyError('HANDLE_INVALID', 'handle', handle, 'must be what limiter.handle() gave, of this same version')
}
