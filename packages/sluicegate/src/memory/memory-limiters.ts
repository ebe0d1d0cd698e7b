import { PolicyError } from '../errors.js'
import type { Limiter, LimiterHandle } from '../limiter.js'
import { asGiven } from '../options/option-checks.js'
import type { PlanFor } from '../plan-options.js'
import { type Algorithm, changedPolicy, type Policy } from '../policy/policy.js'
import { numbersOf } from '../policy/policy-numbers.js'
import { type Clock, checkClock, clockFromHandle } from '../time/clock.js'
import {
  checkSharedMemory,
  createMemory,
  grownBy,
  laterSizeFor,
  type MemorySize,
  memorySizesFor,
  type OverflowBudget,
  PAGE_BYTES,
  pagesOf,
  type Section,
  type SectionOptions,
  sectionAt,
  sectionWith,
  untouchedIn,
} from './core-memory.js'
import { randomSecret } from './fingerprint.js'
import { checkedHandle, invalidHandle, isFounded } from './handle-check.js'
import { MemoryAllOfLimiter } from './memory-all-of.js'
import { type MemoryHandle, MemoryLimiter, type MemoryLimiterParts } from './memory-limiter.js'
import { MemoryPermitLimiter } from './memory-permit-limiter.js'
import { OpenCore } from './open-core.js'
import { PlannedParts } from './planned-parts.js'
import { checkedDescription } from './snapshot/memory-snapshot.js'
import { SectionWords } from './snapshot/section-words.js'
import { invalidSnapshot, type Snapshot } from './snapshot/snapshot.js'

/** What a new limiter in memory is given beside its policy. */
export interface NewMemory extends Pick<MemoryLimiterParts, 'clock' | 'hotKeys' | 'maxWaiting'> {
  readonly room: SectionOptions
  /** Of an `allOf`: other policies for some keys of its levels. */
  readonly planFor?: PlanFor | undefined
}

const ROOM: readonly string[] = ['denyWhenFull', 'maxKeys', 'growTo', 'newcomers'] satisfies (keyof SectionOptions)[]

/** A limiter in its own memory. */
export function newMemoryLimiter(policy: Policy, { room: given, planFor, ...parts }: NewMemory): Limiter {
  const room = asGiven(given, ROOM)
  const { policies = [policy], name, algorithm } = policy
  const places: Place[] = []
  for (const [i, size] of memorySizesFor(policies, room).entries()) {
    places.push(placeAt(places.at(-1)?.section.end ?? 0, policies[i] as Policy, size))
  }
  const made = limitersIn(places, room, randomSecret(), { ...parts, hotKeys: algorithm === 'all-of' ? 0 : parts.hotKeys })
  if (algorithm !== 'all-of') return made.limiters[0] as Limiter
  return new MemoryAllOfLimiter({ ...parts, parts: made.limiters, name, plans: planFor && new PlannedParts(planFor, made.add) })
}

/** A section, and what it is laid out for. */
interface Place {
  readonly policy: Policy
  readonly section: Section
  /** Bytes that no key occupies before it grows. */
  readonly untouched: number
  readonly counterCount: number
  readonly overflow: OverflowBudget | undefined
}

function placeAt(address: number, policy: Policy, size: MemorySize): Place {
  const section = sectionAt(address, size)
  const { counterCount = 0, overflow } = size
  return { policy, section, untouched: untouchedIn(section, size), counterCount, overflow }
}

/** The limiters of sections, in one memory of their own, and what adds one more; it throws `PolicyError` `RANGE_UNSUPPORTED`. */
function limitersIn(
  places: readonly Place[],
  room: SectionOptions,
  secret: readonly [number, number],
  parts: Omit<NewMemory, 'room' | 'planFor'>,
): { readonly limiters: readonly MemoryLimiter[]; readonly add: (policy: Policy) => MemoryLimiter } {
  const bytes = pagesOf(places.at(-1)?.section.end ?? 0) * PAGE_BYTES
  const memory = memoryOf(bytes)
  const limiterAt = (place: Place): MemoryLimiter => {
    const open: MemoryLimiterParts['open'] = (host) => {
      const opened = new OpenCore({ make: memory, bytes, untouchedBytes: place.untouched }, place.section.address, host)
      opened.begin(() => layOut(opened, place, room))
      return opened
    }
    return limiterOver({ ...parts, open, secret }, place.policy.algorithm, place.policy)
  }
  const add = (policy: Policy): MemoryLimiter => {
    const size = laterSizeFor(policy, room, memory().buffer.byteLength)
    return limiterAt(placeAt(grownBy(memory(), sectionAt(0, size).end), policy, size))
  }
  return { limiters: places.map(limiterAt), add }
}

/** A larger memory is made at once: it may be too much. */
const MOST_LATER_BYTES = 2 ** 31

/** A memory of its own, made when it is needed. */
function memoryOf(bytes: number): () => WebAssembly.Memory {
  let memory: WebAssembly.Memory | undefined
  if (bytes > MOST_LATER_BYTES) memory = createMemory(bytes)
  else checkSharedMemory()
  return () => (memory ??= createMemory(bytes))
}

function layOut(opened: OpenCore, { section, counterCount, overflow }: Place, room: SectionOptions): void {
  const { address, lines, parts, counters } = section
  const { core } = opened
  core.create(address, lines, room.denyWhenFull)
  const [first = 0, second = 0] = parts
  if (second > 0) core.addParts(first, second)
  if (overflow !== undefined) core.admitOverflow(counters, counterCount, overflow.limit, overflow.windowUs)
  new SectionWords(opened).noteOptions(room)
}

/**
 * The limiter of a handle, in this thread.
 *
 * @throws {PolicyError} `HANDLE_INVALID`, `CLOCK_INVALID`.
 */
export function attachedMemoryLimiter(
  handle: LimiterHandle,
  options: Pick<MemoryLimiterParts, 'hotKeys' | 'maxWaiting'> & { readonly clock: Clock | undefined },
): Limiter {
  const checked = checkedHandle(handle)
  const clock: unknown = options.clock ?? clockFromHandle(checked.clock)
  checkClock(clock)
  if (!('parts' in checked)) return attachedPart(checked, { ...options, clock }, handle)
  // Together they are charged in one memory, which is that of the first.
  const memory = checked.parts[0]?.memory as MemoryHandle['memory']
  const parts = checked.parts.map((part) => attachedPart({ ...part, memory }, { ...options, hotKeys: 0, clock }, handle))
  return new MemoryAllOfLimiter({ ...options, clock, parts, name: checked.name })
}

/** @throws {PolicyError} `HANDLE_INVALID` when no such policy is in force there. */
function attachedPart(
  { memory, section, secret, algorithm }: MemoryHandle,
  parts: Pick<MemoryLimiterParts, 'clock' | 'hotKeys' | 'maxWaiting'>,
  handle: LimiterHandle,
): MemoryLimiter {
  const open: MemoryLimiterParts['open'] = (host) => {
    const opened = new OpenCore(memory, section, host)
    if (isFounded(opened)) return opened
    throw invalidHandle(handle)
  }
  try {
    const limiter = limiterOver({ ...parts, secret, open }, algorithm)
    if (limiter.policy.algorithm === algorithm) return limiter
  } catch (error) {
    // There may be no room for one more core. Anything else comes of what stands in a memory that is no limiter's.
    if (error instanceof RangeError) throw error
  }
  throw invalidHandle(handle)
}

/**
 * A limiter in its own memory, as it was when the snapshot was taken.
 *
 * @throws {PolicyError} `SNAPSHOT_INVALID`
 */
export function restoredMemoryLimiter(
  { description, contents }: Snapshot,
  sizes: Pick<MemoryLimiterParts, 'hotKeys' | 'maxWaiting'>,
  clockFor: (policy: Policy) => Clock,
): Limiter {
  const { allOf: name, options, secret, sections } = checkedDescription(description)
  const places: Place[] = []
  for (const { policy, lines, counters, overflow } of sections) {
    const section = sectionWith(places.at(-1)?.section.end ?? 0, lines, { stride: numbersOf(policy).stride, counterCount: counters })
    places.push({ policy, section, untouched: 0, counterCount: counters, overflow: counters === 0 ? undefined : overflow })
  }
  const [first, ...others] = sections.map(({ policy }) => policy) as [Policy, ...Policy[]]
  const clock = clockFor(name === undefined ? first : changedPolicy(first, { policies: [first, ...others] }))
  const parts = { ...sizes, clock, hotKeys: name === undefined ? sizes.hotKeys : 0 }
  const limiters = roomFor(() => {
    const made = limitersIn(places, options, secret, parts).limiters
    for (const limiter of made) limiter.core.prepare()
    return made
  })
  let begin: number | undefined = 0
  for (const limiter of limiters) begin = begin === undefined ? undefined : limiter.load(contents, begin)
  if (begin !== contents.length) throw invalidSnapshot('has keys that no limiter could have left')
  return name === undefined ? (limiters[0] as Limiter) : new MemoryAllOfLimiter({ ...sizes, clock, parts: limiters, name })
}

/** The options that the limiter of a snapshot was made with. */
export function optionsIn({ description }: Snapshot): SectionOptions {
  return checkedDescription(description).options
}

function roomFor<Made>(make: () => Made): Made {
  try {
    return make()
  } catch (error) {
    if (error instanceof PolicyError && error.code !== 'RANGE_UNSUPPORTED') throw error
    throw invalidSnapshot('needs more memory than there is')
  }
}

function limiterOver(parts: MemoryLimiterParts, algorithm: Algorithm, policy?: Policy): MemoryLimiter {
  // What a permit limiter answers is a decision, too.
  return algorithm === 'concurrency'
    ? (new MemoryPermitLimiter(parts, policy) as unknown as MemoryLimiter)
    : new MemoryLimiter(parts, policy)
}
