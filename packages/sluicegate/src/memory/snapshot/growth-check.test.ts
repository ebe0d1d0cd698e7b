import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLimiter, fixedWindow, type Limiter, manualClock, restoreLimiter } from '../../index.js'
import { decodedSnapshot, encodedSnapshot } from './snapshot.js'

// Offsets of the core's `memory-map.ts`.
const LINES = 16
const FIRST_LINES = 40
const SECOND_LINES = 48
const GROWN = 136
const OVERFLOW_BUDGET = 144
const OVERFLOW_COUNTERS = 192
const OVERFLOW_COUNTER_COUNT = 200
const OVERFLOW_LIMIT = 208
const OVERFLOW_WINDOW_US = 216

const clock = manualClock(1_789_000_000_000)

/** A limiter whose table has grown, and is full. */
function grown(): Limiter {
  const limiter = createLimiter(fixedWindow({ limit: 1, window: '1d' }), {
    clock,
    maxKeys: 4,
    growTo: 200,
    newcomers: { limit: 5, window: '1h' },
  })
  for (let i = 0; i < 600; i++) limiter.take(`key ${i}`)
  assert.equal(limiter.stats().overflows, 5)
  return limiter
}

/** The limiter of a snapshot in which a word was written over, and the checksum made again. */
function restoredWith(limiter: Limiter, offset: number, word: bigint): Limiter {
  const { description, contents } = decodedSnapshot(limiter.snapshot())
  const piece = new BigUint64Array([BigInt(offset / 8) | (8n << 32n), word])
  return restoreLimiter(encodedSnapshot(description, [contents, new Uint8Array(piece.buffer)]), { clock })
}

/** The word at an offset, in the pieces of a memory. */
function wordIn(pieces: Uint8Array, offset: number): bigint {
  const view = new DataView(pieces.buffer, pieces.byteOffset, pieces.byteLength)
  for (let at = 0; at < pieces.length; at += 8 + view.getUint32(at + 4, true)) {
    const into = offset - view.getUint32(at, true) * 8
    if (into >= 0 && into < view.getUint32(at + 4, true)) return view.getBigUint64(at + 8 + into, true)
  }
  return 0n
}

test('a snapshot whose parts or counters do not fit its memory is refused', () => {
  const limiter = grown()
  assert.equal(restoredWith(limiter, GROWN, 2n).take('new').allowed, false)
  const wrong: readonly (readonly [number, bigint])[] = [
    [FIRST_LINES, 0n],
    [FIRST_LINES, 10_000n],
    [SECOND_LINES, 0n],
    [SECOND_LINES, 1n << 31n],
    [LINES, 3n],
    [GROWN, 3n],
    [OVERFLOW_BUDGET, 1n << 63n],
    [OVERFLOW_BUDGET, 3n << 62n],
    [OVERFLOW_COUNTERS, 0n],
    [OVERFLOW_COUNTERS, 1n << 40n],
    [OVERFLOW_COUNTER_COUNT, 1n << 40n],
    [OVERFLOW_LIMIT, 0n],
    [OVERFLOW_WINDOW_US, 1n << 60n],
  ]
  for (const [offset, word] of wrong) {
    assert.throws(() => restoredWith(limiter, offset, word), { code: 'SNAPSHOT_INVALID' }, `${offset}: ${word}`)
  }
})

test('a snapshot whose counter holds a ticket is refused', () => {
  const limiter = grown()
  const { contents } = decodedSnapshot(limiter.snapshot())
  const counters = Number(wordIn(contents, OVERFLOW_COUNTERS))
  assert.throws(() => restoredWith(limiter, counters, 3n << 62n), { code: 'SNAPSHOT_INVALID' })
  assert.equal(restoredWith(limiter, counters, 0n).take('key 0').allowed, false)
})
