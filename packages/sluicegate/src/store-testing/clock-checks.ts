import type { CasState, CasSwap } from '../store/cas-store.js'
import { bytesOf, expect, repeated, type StoreCheck, TTL_MS, textOf } from './store-check.js'

const READS = 40
const PASSED_MS = 300
const DAY_MS = 86_400_000
/** 2001: in milliseconds or seconds, no clock of our days gets there. */
const LEAST_US = 1e15

/** What time promises. */
export const clockChecks: readonly StoreCheck[] = [
  {
    name: 'the clock never runs back, and counts whole microseconds since 1970',
    async run({ one, other, wait, freshKey }) {
      const key = freshKey()
      let lastUs = 0
      let { version } = await one.read(key)
      await repeated(READS, async (i) => {
        const read = await (i % 2 === 0 ? one : other).read(key)
        const { state } = await (i % 2 === 0 ? one : other).swap({ key, version, value: bytesOf(String(i)), ttlMs: TTL_MS })
        ;({ version } = state)
        for (const { nowUs } of [read, state]) {
          expect(Number.isSafeInteger(nowUs) && nowUs > LEAST_US, `nowUs was ${nowUs}: it must be whole microseconds since 1970`)
          expect(nowUs >= lastUs, `the clock ran back by ${lastUs - nowUs} us: take the time from one place, the server`)
          lastUs = nowUs
        }
        if (i % 10 === 0) await wait(1)
      })
    },
  },
  {
    name: 'the clock runs at the pace of time',
    async run({ one, wait, freshKey }) {
      const key = freshKey()
      const before = await one.read(key)
      await wait(PASSED_MS)
      const { nowUs } = await one.read(key)
      const passedMs = (nowUs - before.nowUs) / 1000
      expect(
        passedMs >= PASSED_MS * 0.9 && passedMs < PASSED_MS + 10_000,
        `in ${PASSED_MS} ms the clock moved by ${passedMs} ms: read it anew for each call`,
      )
    },
  },
  {
    name: 'a value is kept for its ttl at least, and each swap begins it anew',
    async run({ one, doors, wait, freshKey }) {
      const beginMs = performance.now()
      await one.read(freshKey())
      // The calls take their time too.
      const callsMs = 4 * Math.ceil(performance.now() - beginMs)
      const keys = doors.map(freshKey)
      const swapped = (text: string, ttlMs: number, versions: readonly CasSwap['version'][]) =>
        Promise.all(
          doors.map((door, i) => door.swap({ key: keys[i] as string, version: versions[i], value: bytesOf(text), ttlMs: ttlMs + callsMs })),
        )
      const areKept = async (text: string): Promise<boolean> => {
        const states = await Promise.all(keys.map((key) => one.read(key)))
        return states.every((state) => textOf(state) === text)
      }
      const first = await swapped('first', 900, [])
      await wait(500)
      expect(await areKept('first'), 'a value with a ttl of 900 ms was gone after 500: round the ttl up, never down')
      await swapped(
        'second',
        2500,
        first.map(({ state }) => state.version),
      )
      await wait(1600)
      expect(await areKept('second'), 'a value with a ttl of 2500 ms was gone after 1600: each swap must begin its ttl anew, rounded up')
    },
  },
  {
    name: 'a long ttl is kept',
    async run({ one, doors, wait, freshKey }) {
      const keys = [25 * DAY_MS, 31 * DAY_MS, 50 * DAY_MS, 800 * DAY_MS].flatMap((ttlMs) =>
        doors.map((door) => ({ key: freshKey(), ttlMs, door })),
      )
      await Promise.all(keys.map(({ key, ttlMs, door }) => door.swap({ key, version: undefined, value: bytesOf('long'), ttlMs })))
      await wait(50)
      const states = await Promise.all(keys.map(({ key }) => one.read(key)))
      for (const [i, { ttlMs }] of keys.entries()) {
        expect(
          textOf(states[i] as CasState) === 'long',
          `a value with a ttl of ${ttlMs / DAY_MS} days was gone at once: it overflows, or is taken for a date`,
        )
      }
    },
  },
]
