import assert from 'node:assert/strict'
import { test } from 'node:test'
import { crc32 as zlibCrc32 } from 'node:zlib'
import { CREW_ALGORITHMS, everyNth, policyOf } from 'sluicegate-testkit'
import { createLimiter, type Key, type Limiter, manualClock, restoreLimiter, slidingLog, tokenBucket } from '../../index.js'
import { ENTRIES_PER_LINE } from '../core-memory.js'
import { low } from '../fingerprint.js'
import type { MemoryLimiter } from '../memory-limiter.js'
import type { OpenCore } from '../open-core.js'
import { crc32, decodedSnapshot, encodedSnapshot } from './snapshot.js'

// Keys that come, go and move while a small table is copied: at the beginning, after each line that holds any, and at the end. Lines are
// of four entries; who finds no room in the first goes into the second, then into the third.

const CLOCK = manualClock(1_789_000_000_000)
const MONTH_MS = 30 * 86_400_000
const TAKES = 10
const MOST_MOMENTS = 6

type CrewAlgorithm = (typeof CREW_ALGORITHMS)[number]

interface Scene {
  readonly limiter: Limiter
  /** The one that it is about. */
  readonly key: Key
  /** They belong into the first line, as it does. */
  readonly others: readonly Key[]
  /** It belongs into the second. */
  readonly neighbour: Key
  readonly take: (...keys: readonly Key[]) => void
}

interface Story {
  readonly name: string
  readonly before: (scene: Scene) => void
  readonly meanwhile: (scene: Scene) => void
}

const STORIES: readonly Story[] = [
  {
    name: 'moves from a line to another',
    before: ({ key, others, take }) => take(key, ...others.slice(0, 3), key, key),
    meanwhile({ limiter, key, others: [, , , newcomer = ''], take }) {
      limiter.reset(key)
      take(newcomer, key)
    },
  },
  {
    name: 'moves away from the mark of a thread that got no further',
    before: ({ key, others, take }) => take(key, ...others.slice(0, 3), key, key),
    meanwhile({ limiter, key, take }) {
      for (const { section } of partsOf(limiter)) markFirst(section.open)
      take(key)
    },
  },
  {
    name: 'comes when its line has just become full',
    before: ({ others, take }) => take(...others.slice(0, 3)),
    meanwhile: ({ key, others: [, , , newcomer = ''], take }) => take(newcomer, key),
  },
  {
    name: 'comes when its line, unused until then, and the next one have just become full',
    before: ({ neighbour, take }) => take(neighbour),
    meanwhile: ({ key, others, take }) => take(...others, key),
  },
]

for (const [i, algorithm] of CREW_ALGORITHMS.entries()) {
  for (const [j, story] of STORIES.entries()) {
    everyNth(i + j, 2)(
      `${algorithm.name}: a key that ${story.name} while it is copied is in the copy once or not at all, and can be reset`,
      () => {
        let moments = 0
        while (hasMoment(moments, algorithm, story)) moments++
        assert.ok(moments >= 4, `${moments} moments`)
      },
    )
  }
}

for (const [i, algorithm] of CREW_ALGORITHMS.entries()) {
  everyNth(i, 2)(
    `${algorithm.name}: an entry that is copied under a mark, and has its state again before the copy ends, is no fault of the copy`,
    () => {
      let moments = 0
      for (let at = 0; at < MOST_MOMENTS; at++) {
        for (let until = at + 1; until < MOST_MOMENTS; until++) {
          const { limiter, key, take } = sceneOf(algorithm)
          take(key)
          const states: bigint[] = []
          atMoment(at, limiter, () => {
            for (const { section } of partsOf(limiter)) {
              states.push(stateOfFirst(section.open))
              markFirst(section.open)
            }
          })
          atMoment(until, limiter, () => {
            for (const { section } of partsOf(limiter)) setStateOfFirst(section.open, states.shift() ?? 0n)
            moments++
          })
          const restored = restoreLimiter(limiter.snapshot(), { clock: CLOCK })
          assert.ok([0, algorithm.cost].includes(spentOf(restored, key)), `from moment ${at} to ${until}`)
          restored.reset(key)
          assert.equal(spentOf(restored, key), 0)
        }
      }
      assert.ok(moments >= 3, `${moments} moments`)
    },
  )
}

/** Runs the story at a moment of the copy, then checks the copy. False: the copy has fewer moments. */
function hasMoment(moment: number, algorithm: CrewAlgorithm, { before, meanwhile }: Story): boolean {
  const { cost, keyOf } = algorithm
  const scene = sceneOf(algorithm)
  const { limiter, key, others, neighbour } = scene
  before(scene)
  const spentBefore = spentOf(limiter, key)
  let happened = false
  atMoment(moment, limiter, () => {
    meanwhile(scene)
    happened = true
  })
  const restored = restoreLimiter(limiter.snapshot(), { clock: CLOCK })
  const spent = spentOf(restored, key)
  assert.ok([0, spentBefore, cost].includes(spent), `${spent} spent at moment ${moment}`)
  for (const [i, part] of partsOf(restored).entries()) {
    const inUse = [key, ...others, neighbour].filter((each) => spentOf(part, ownOf(each, i)) > 0)
    assert.equal(part.stats().keys, inUse.length, `keys at moment ${moment}`)
  }
  restored.reset(key)
  // A new key takes the place of the key, or a free place in its line.
  for (const later of keysOfLine(0, restored, keyOf, 'later', 1)) restored.take(later, cost)
  assert.equal(spentOf(restored, key), 0, `spent after a reset, at moment ${moment}`)
  return happened
}

function sceneOf({ specOf, keyOf, cost }: CrewAlgorithm): Scene {
  const limiter = createLimiter(policyOf(specOf(TAKES, MONTH_MS)), { clock: CLOCK, maxKeys: 1 })
  const [key = '', ...others] = keysOfLine(0, limiter, keyOf, 'key', 8)
  const [neighbour = ''] = keysOfLine(1, limiter, keyOf, 'neighbour', 1)
  const take = (...keys: readonly Key[]): void => {
    for (const each of keys) assert.equal(limiter.take(each, cost).allowed, true)
  }
  return { limiter, key, others, neighbour, take }
}

/** `count` keys that belong in a line. */
function keysOfLine(line: number, limiter: Limiter, keyOf: (name: string) => Key, name: string, count: number): readonly Key[] {
  const keys: Key[] = []
  for (let i = 0; keys.length < count; i++) {
    const key = keyOf(`${name} ${i}`)
    if (partsOf(limiter).every((part, j) => lineOf(part, ownOf(key, j)) === line)) keys.push(key)
  }
  return keys
}

function lineOf(part: MemoryLimiter, key: string): number {
  part.hash(key)
  return Math.floor(((low >>> 0) * part.section.open.lines) / 2 ** 32)
}

/** The state that `forget` of the core leaves if its thread dies: the first entry of the table has an abandoned mark. */
function markFirst(open: OpenCore): void {
  const words = tableOf(open)
  words[1] = (1n << 63n) | ((words[0] as bigint) & 0x3fffn)
}

function tableOf(open: OpenCore): BigUint64Array {
  return new BigUint64Array(open.memory.buffer, open.section + open.constant('TABLE'))
}

function stateOfFirst(open: OpenCore): bigint {
  return tableOf(open)[1] as bigint
}

/** The thread of a mark goes on, and puts a state there, under the same identity. */
function setStateOfFirst(open: OpenCore, state: bigint): void {
  tableOf(open)[1] = state
}

/** Does something before one of the lines is saved, or looked at again. */
function atMoment(moment: number, limiter: Limiter, something: () => void): void {
  const [{ core }] = partsOf(limiter) as [MemoryLimiter]
  const { changedHands, saveEntries } = core
  let looks = 0
  const look = (): void => {
    if (looks++ === moment) something()
  }
  core.saveEntries = (from, to, nowUs) => {
    for (let entry = from; entry < to; entry += ENTRIES_PER_LINE) {
      look()
      if (!saveEntries(entry, Math.min(to, entry + ENTRIES_PER_LINE), nowUs)) return 0
    }
    return 1
  }
  core.changedHands = (entry, fingerprint) => {
    if (entry % ENTRIES_PER_LINE === 0) look()
    return changedHands(entry, fingerprint)
  }
}

function partsOf(limiter: Limiter): readonly MemoryLimiter[] {
  const { parts } = limiter as unknown as { parts?: readonly MemoryLimiter[] }
  return parts ?? [limiter as unknown as MemoryLimiter]
}

function ownOf(key: Key, part: number): string {
  return typeof key === 'string' ? key : (key[part] as string)
}

function spentOf(limiter: Pick<Limiter, 'peek'>, key: Key): number {
  const { limit, remaining } = limiter.peek(key)
  return limit - remaining
}

test('the check value of the standard', () => {
  assert.equal(crc32(new TextEncoder().encode('123456789')), 0xcbf43926)
})

test('any bytes give what zlib gives', () => {
  for (let length = 0; length < 600; length += 7) {
    const bytes = Uint8Array.from({ length }, (_, i) => (i * 167 + length) & 0xff)
    assert.equal(crc32(bytes), zlibCrc32(bytes))
  }
})

const START_MS = 1_789_000_000_000

test('a description that is not one of a limiter is refused', () => {
  const limiter = createLimiter(slidingLog({ limit: 10, window: '1s' }), { clock: manualClock(START_MS), maxKeys: 30 })
  limiter.take('k')
  const { description, contents } = decodedSnapshot(limiter.snapshot())
  const restore = (wrong: object): Limiter => restoreLimiter(encodedSnapshot({ ...description, ...wrong }, [contents]))
  assert.equal(restore({}).policy.name, limiter.policy.name)
  const [section] = description.sections as [Record<string, unknown>]
  const withSection = (wrong: object): object => ({ sections: [{ ...section, ...wrong }] })
  const wrongs: readonly object[] = [
    { secret: [1] },
    { secret: [1, 'two'] },
    { options: null },
    { options: { denyWhenFull: false, maxKeys: 0 } },
    { sections: [] },
    { sections: null },
    { sections: [null] },
    { sections: [section, section] },
    { allOf: 'two', sections: [section, section] },
    { allOf: '' },
    { allOf: 7 },
    withSection({ policy: tokenBucket({ limit: 1, window: '1s' }) }),
    withSection({ policy: { ...limiter.policy, limit: 0 } }),
    withSection({ policy: null }),
    withSection({ lines: [] }),
    withSection({ lines: [0] }),
    withSection({ lines: [1] }),
    withSection({ lines: [2, 2, 2, 2] }),
    withSection({ lines: [100_000_000] }),
    withSection({ lines: '2' }),
    withSection({ counters: -1 }),
    withSection({ counters: 2, overflow: { limit: 0, windowUs: 0 } }),
    withSection({ overflow: null }),
  ]
  for (const wrong of wrongs) assert.throws(() => restore(wrong), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, JSON.stringify(wrong))
  for (const cut of [8, 16, contents.length - 3]) {
    const cutOff = encodedSnapshot(description, [contents.subarray(0, cut)])
    assert.throws(() => restoreLimiter(cutOff), { name: 'PolicyError', code: 'SNAPSHOT_INVALID' }, `${cut} bytes`)
  }
})
