import { clockFromHandle, preciseClock } from './clock.js'
import { createCore, openCore } from './core.js'
import { PolicyError } from './errors.js'
import { randomSecret } from './fingerprint.js'
import type { Limiter, LimiterHandle, LimiterOptions } from './limiter.js'
import { type MemoryHandle, MemoryLimiter } from './memory-limiter.js'
import { checkedPolicy } from './checked-policy.js'
import type { Policy } from './policy.js'

const DEFAULT_MAX_KEYS = 100_000
const MOST_KEYS = 100_000_000
const MOST_HOT_KEYS = 10_000
const OPTIONS: ReadonlySet<string> = new Set(['maxKeys', 'clock', 'onFull', 'hotKeys'])
const ATTACH_OPTIONS: ReadonlySet<string> = new Set(['clock', 'hotKeys'])

/**
 * A limiter in shared memory: exact, and shared with worker threads through {@link Limiter.handle}.
 *
 * @throws {PolicyError} on an unknown option or one out of range.
 * @example
 * const limiter = createLimiter(tokenBucket({ limit: 100, window: '1m' }))
 * const { allowed, retryAfterMs } = limiter.take('user:42')
 */
export function createLimiter(policy: Policy, options: LimiterOptions = {}): Limiter {
  checkNames(options, OPTIONS)
  const checked = checkedPolicy(policy)
  const { maxKeys = DEFAULT_MAX_KEYS, clock = preciseClock(), onFull = 'evict' } = options
  checkWhole('maxKeys', maxKeys, 1, MOST_KEYS)
  checkClock(clock)
  if (onFull !== 'evict' && onFull !== 'deny') throw new PolicyError('OPTION_INVALID', 'onFull', onFull, "must be 'evict' or 'deny'")
  const open: MemoryLimiterOpen = (host) => createCore(maxKeys, onFull === 'deny', host)
  return new MemoryLimiter({ open, secret: randomSecret(), clock, hotKeys: checkedHotKeys(options) }, checked)
}

/**
 * In a worker thread: the limiter of a handle, sharing its exact budget, policy and time. A custom clock does not travel and
 * must be passed again.
 *
 * @throws {PolicyError} `HANDLE_INVALID`, or `CLOCK_INVALID` when a custom clock is missing.
 * @example
 * // main:   new Worker(file, { workerData: limiter.handle() })
 * // worker: const limiter = attachLimiter(workerData)
 */
export function attachLimiter(handle: LimiterHandle, options: Pick<LimiterOptions, 'clock' | 'hotKeys'> = {}): Limiter {
  checkNames(options, ATTACH_OPTIONS)
  const { sluicegate, memory, secret, clock: posted } = (handle ?? {}) as Partial<MemoryHandle>
  if (sluicegate !== 1 || !(memory instanceof WebAssembly.Memory) || secret === undefined || posted === undefined) {
    throw new PolicyError('HANDLE_INVALID', 'handle', handle, 'must be what limiter.handle() gave, of this same version')
  }
  const clock = options.clock ?? clockFromHandle(posted)
  checkClock(clock)
  const open: MemoryLimiterOpen = (host) => openCore(memory, host)
  return new MemoryLimiter({ open, secret, clock, hotKeys: checkedHotKeys(options) })
}

type MemoryLimiterOpen = ConstructorParameters<typeof MemoryLimiter>[0]['open']

function checkedHotKeys({ hotKeys = 0 }: LimiterOptions): number {
  checkWhole('hotKeys', hotKeys, 0, MOST_HOT_KEYS)
  return hotKeys
}

function checkNames(options: object, known: ReadonlySet<string>): void {
  for (const [name, value] of Object.entries(options)) {
    if (!known.has(name)) throw new PolicyError('OPTION_UNKNOWN', name, value, `is not one of ${[...known].join(', ')}`)
  }
}

function checkWhole(option: string, value: unknown, least: number, most: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return
  throw new PolicyError('OPTION_INVALID', option, value, `must be an integer from ${least} to ${most}`)
}

function checkClock(clock: unknown): asserts clock is NonNullable<LimiterOptions['clock']> {
  if (typeof (clock as { nowMs?: unknown } | undefined)?.nowMs === 'function') return
  throw new PolicyError(
    'CLOCK_INVALID',
    'clock',
    clock,
    'must have nowMs(): pass preciseClock(), coarseClock() or your own, also to attachLimiter()',
  )
}
