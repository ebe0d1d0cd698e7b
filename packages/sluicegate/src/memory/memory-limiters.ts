import type { Limiter, LimiterHandle } from '../limiter.js'
import { asGiven } from '../options/option-checks.js'
import { type Algorithm, changedPolicy, type Policy } from '../policy/policy.js'
import { type Clock, checkClock, clockFromHandle } from '../time/clock.js'
import {
  checkSharedMemory,
  createMemory,
  type MemorySize,
  memorySizesFor,
  PAGE_BYTES,
  pagesOf,
  type Section,
  type SectionOptions,
  sectionAt,
  untouchedIn,
} from './core-memory.js'
import { randomSecret } from './fingerprint.js'
import { checkedHandle, invalidHandle, isFounded } from './handle-check.js'
import { MemoryAllOfLimiter } from './memory-all-of.js'
import { type MemoryHandle, MemoryLimiter, type MemoryLimiterParts } from './memory-limiter.js'
import { MemoryPermitLimiter } from './memory-permit-limiter.js'
import { OpenCore } from './open-core.js'
import { checkedDescription, type MemoryDescription } from './snapshot/memory-snapshot.js'
import { checkApart, checkSection } from './snapshot/section-check.js'
import { SectionWords } from './snapshot/section-words.js'
import { invalidSnapshot, restorePieces, type Snapshot } from './snapshot/snapshot.js'

/** What a new limiter in memory is given beside its policy. */
export interface NewMemory extends Pick<MemoryLimiterParts, 'clock' | 'hotKeys' | 'maxWaiters'> {
  readonly room: SectionOptions
}

const ROOM: readonly string[] = ['denyWhenFull', 'maxKeys', 'growTo', 'newcomers'] satisfies (keyof SectionOptions)[]

/** A limiter in its own memory. */
export function newMemoryLimiter(policy: Policy, { room: given, ...parts }: NewMemory): Limiter {
  const room = asGiven(given, ROOM)
  const { policies = [policy], name, algorithm } = policy
  const sizes = memorySizesFor(policies, room)
  const sections: Section[] = []
  for (const size of sizes) sections.push(sectionAt(sections.at(-1)?.end ?? 0, size))
  const bytes = pagesOf(sections.at(-1)?.end ?? 0) * PAGE_BYTES
  const memory = memoryOf(bytes, grows(policies.map((part) => part.algorithm)))
  const secret = randomSecret()
  const limiters = policies.map((part, i) => {
    const section = sections[i] as Section
    const open: MemoryLimiterParts['open'] = (host) => {
      const later = { make: memory, bytes, untouchedBytes: untouchedIn(section, sizes[i] as MemorySize) }
      const opened = new OpenCore(later, section.address, host)
      opened.begin(() => layOut(opened, section, sizes[i] as MemorySize, room))
      return opened
    }
    return limiterOver({ ...parts, hotKeys: algorithm === 'all-of' ? 0 : parts.hotKeys, open, secret }, part.algorithm, part)
  })
  return algorithm === 'all-of' ? new MemoryAllOfLimiter({ ...parts, parts: limiters, name }) : (limiters[0] as Limiter)
}

/** A larger memory is made at once: it may be too much. */
const MOST_LATER_BYTES = 2 ** 31

/** A memory of its own, made when it is needed. */
function memoryOf(bytes: number, grows: boolean): () => WebAssembly.Memory {
  let memory: WebAssembly.Memory | undefined
  if (bytes > MOST_LATER_BYTES) memory = createMemory(bytes, grows)
  else checkSharedMemory()
  return () => (memory ??= createMemory(bytes, grows))
}

function layOut(
  opened: OpenCore,
  { address, lines, parts, counters }: Section,
  { counterCount, overflow }: MemorySize,
  room: SectionOptions,
): void {
  const { core } = opened
  core.create(address, lines, room.denyWhenFull)
  const [first = 0, second = 0] = parts
  if (second > 0) core.addParts(first, second)
  if (overflow !== undefined) core.admitOverflow(counters, counterCount ?? 0, overflow.limit, overflow.windowUs)
  new SectionWords(opened).noteOptions(room)
}

/** What a thread gives its own end of a limiter. */
export interface AttachedMemory extends Pick<MemoryLimiterParts, 'hotKeys' | 'maxWaiters'> {
  readonly clock: Clock | undefined
}

/**
 * The limiter of a handle, in this thread.
 *
 * @throws {PolicyError} `HANDLE_INVALID`, `CLOCK_INVALID`.
 */
export function attachedMemoryLimiter(handle: LimiterHandle, options: AttachedMemory): Limiter {
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
  parts: Pick<MemoryLimiterParts, 'clock' | 'hotKeys' | 'maxWaiters'>,
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
  sizes: Pick<MemoryLimiterParts, 'hotKeys' | 'maxWaiters'>,
  clockFor: (policy: Policy) => Clock,
): Limiter {
  const checked = checkedDescription(description)
  const { allOf: name, secret, sections } = checked
  const { memory, policies } = restoredMemory(checked, contents)
  const parts = {
    ...sizes,
    clock: clockFor(name === undefined ? (policies[0] as Policy) : changedPolicy(policies[0] as Policy, { policies })),
  }
  const limiters = sections.map(({ address, algorithm }) => {
    const hotKeys = name === undefined ? parts.hotKeys : 0
    return limiterOver({ ...parts, hotKeys, secret, open: (host) => new OpenCore(memory, address, host) }, algorithm)
  })
  return name === undefined ? (limiters[0] as Limiter) : new MemoryAllOfLimiter({ ...parts, parts: limiters, name })
}

/** The options that the limiter of a snapshot was made with. */
export function optionsIn({ description }: Snapshot): SectionOptions {
  return checkedDescription(description).options
}

interface RestoredMemory {
  readonly memory: WebAssembly.Memory
  /** Those in force, one a section. */
  readonly policies: readonly Policy[]
}

function restoredMemory({ bytes, options, sections }: MemoryDescription, contents: Uint8Array): RestoredMemory {
  const algorithms = sections.map(({ algorithm }) => algorithm)
  const memory = roomFor(bytes, grows(algorithms))
  restorePieces(contents, new Uint8Array(memory.buffer))
  const checked = sections.map((section, i) => checkSection(memory, { ...section, options, end: sections[i + 1]?.address ?? bytes }))
  checkApart(checked.flatMap(({ areas }) => areas))
  return { memory, policies: checked.map(({ policy }) => policy) }
}

function roomFor(bytes: number, grows: boolean): WebAssembly.Memory {
  try {
    return createMemory(bytes, grows)
  } catch {
    throw invalidSnapshot(`needs ${bytes} bytes of memory, which there are not`)
  }
}

/** Whether a change of policy may need more memory, or the threads that die while they change several words. */
function grows(algorithms: readonly Algorithm[]): boolean {
  return algorithms.length > 1 || algorithms.some((algorithm) => algorithm.startsWith('sliding') || algorithm === 'concurrency')
}

function limiterOver(parts: MemoryLimiterParts, algorithm: Algorithm, policy?: Policy): MemoryLimiter {
  // What a permit limiter answers is a decision, too.
  return algorithm === 'concurrency'
    ? (new MemoryPermitLimiter(parts, policy) as unknown as MemoryLimiter)
    : new MemoryLimiter(parts, policy)
}
