import { bytesOf, expect, repeated, type StoreCheck, TTL_MS, textOf, unlikeKeys } from './store-check.js'

const WRITERS = 8
const INCREMENTS = 12
const READS = 30
const MOST_TRIES = 1000

/** What one key promises. */
export const swapChecks: readonly StoreCheck[] = [
  {
    name: 'a key that was never written has neither value nor version',
    async run({ one, freshKey }) {
      const { value, version } = await one.read(freshKey())
      expect(value === undefined && version === undefined, 'read() of an unknown key must give value and version undefined')
    },
  },
  {
    name: 'a swap writes every byte, and a read gives its version',
    async run({ one, other, freshKey }) {
      for (const length of [1, 255, 256, 60_000]) {
        const key = freshKey()
        const value = Uint8Array.from({ length }, (_, i) => i % 256)
        const given = value.slice()
        const { swapped, state } = await one.swap({ key, version: undefined, value: given, ttlMs: TTL_MS })
        given.fill(0)
        const read = await other.read(key)
        expect(swapped, 'a swap from nothing must be made where nothing is')
        expect(
          read.value?.length === length && value.every((byte, i) => read.value?.[i] === byte),
          'a read must give the very bytes that were written, also when the writer changes its array afterwards',
        )
        expect(
          state.version !== undefined && state.version === read.version,
          'the outcome of a swap must have the version that a read gives',
        )
      }
    },
  },
  {
    name: 'a swap from another version is not made, and says what is there',
    async run({ one, other, freshKey }) {
      const key = freshKey()
      const first = await one.swap({ key, version: undefined, value: bytesOf('first'), ttlMs: TTL_MS })
      const second = await other.swap({ key, version: first.state.version, value: bytesOf('second'), ttlMs: TTL_MS })
      expect(second.swapped && textOf(second.state) === 'second', 'a swap from the current version must be made')
      for (const version of [first.state.version, undefined]) {
        const lost = await one.swap({ key, version, value: bytesOf('late'), ttlMs: TTL_MS })
        expect(!lost.swapped, `a swap from ${version === undefined ? 'nothing' : 'an old version'} must not be made where a newer value is`)
        expect(
          textOf(lost.state) === 'second' && lost.state.version === second.state.version,
          'a swap that is not made must give the value and version that are there',
        )
      }
      expect(textOf(await one.read(key)) === 'second', 'a swap that is not made must leave the value')
    },
  },
  {
    name: 'a swap from a version is not made where nothing is',
    async run({ one, freshKey }) {
      const [key, unused] = [freshKey(), freshKey()]
      const { state } = await one.swap({ key, version: undefined, value: bytesOf('value'), ttlMs: TTL_MS })
      const { swapped, state: there } = await one.swap({ key: unused, version: state.version, value: bytesOf('value'), ttlMs: TTL_MS })
      expect(
        !swapped && there.value === undefined && there.version === undefined,
        'a swap from a version must not be made where no value is, and say so',
      )
    },
  },
  {
    name: 'of swaps that race from one version exactly one is made',
    async run({ one, other, freshKey }) {
      const key = freshKey()
      let version: Awaited<ReturnType<typeof one.read>>['version']
      await repeated(INCREMENTS, async (round) => {
        const from = version
        const race = Array.from({ length: WRITERS }, (_, i) =>
          (i % 2 === 0 ? one : other).swap({ key, version: from, value: bytesOf(`${round} ${i}`), ttlMs: TTL_MS }),
        )
        const outcomes = await Promise.all(race)
        const won = outcomes.filter(({ swapped }) => swapped)
        expect(
          won.length === 1,
          `${won.length} of ${WRITERS} swaps from one version were made, and one must be: compare and write in one step`,
        )
        const read = await one.read(key)
        expect(
          read.version === won[0]?.state.version && textOf(read) === textOf(won[0]?.state as typeof read),
          'after a race the value of the winner must be there',
        )
        ;({ version } = read)
      })
    },
  },
  {
    name: 'no update is lost',
    async run({ one, other, freshKey }) {
      const key = freshKey()
      let made = 0
      const increments = async (i: number): Promise<void> => {
        const store = i % 2 === 0 ? one : other
        let state = await store.read(key)
        let own = 0
        await repeated(MOST_TRIES, async () => {
          const value = bytesOf(String(Number(textOf(state) ?? 0) + 1))
          const outcome = await store.swap({ key, version: state.version, value, ttlMs: TTL_MS })
          if (outcome.swapped) {
            own++
            made++
          }
          ;({ state } = outcome)
          return own === INCREMENTS
        })
      }
      await Promise.all(Array.from({ length: WRITERS }, (_, i) => increments(i)))
      const count = Number(textOf(await one.read(key)))
      expect(made > 0, `of ${WRITERS} writers that go on from the state that the last swap gave, ${made} swaps were made`)
      expect(count === made, `${made} increments left ${count}: updates are lost`)
    },
  },
  {
    name: 'a version never comes again, not even with the same value',
    async run({ one, freshKey, wait }) {
      const key = freshKey()
      const { state } = await one.swap({ key, version: undefined, value: bytesOf('A'), ttlMs: TTL_MS })
      const between = await one.swap({ key, version: state.version, value: bytesOf('B'), ttlMs: TTL_MS })
      const again = await one.swap({ key, version: between.state.version, value: bytesOf('A'), ttlMs: 1 })
      expect(
        again.state.version !== state.version,
        'two writes of one value must have two versions (ABA): count them, do not hash the value',
      )
      const expired = freshKey()
      const first = await one.swap({ key: expired, version: undefined, value: bytesOf('A'), ttlMs: 1 })
      for (let tries = 0; tries < 5 && (await one.read(expired)).value !== undefined; tries++) await wait(400)
      const { version } = await one.read(expired)
      const second = await one.swap({ key: expired, version, value: bytesOf('A'), ttlMs: TTL_MS })
      expect(
        second.state.version !== first.state.version,
        'a value that is written after the last one was forgotten must have a version of its own: count over all keys, or use random ones',
      )
    },
  },
  {
    name: 'a read sees every swap that was answered before it',
    async run({ one, other, freshKey }) {
      const key = freshKey()
      let { version } = await one.read(key)
      await repeated(READS, async (i) => {
        const outcome = await one.swap({ key, version, value: bytesOf(String(i)), ttlMs: TTL_MS })
        const read = await other.read(key)
        expect(
          textOf(read) === String(i),
          'a read gave an older value than one that was written before it: read from where swaps are made, not from a replica',
        )
        ;({ version } = outcome.state)
      })
    },
  },
  {
    name: 'keys differ by every character',
    async run({ doors, freshKey }) {
      const differ = async (door: (typeof doors)[0]): Promise<void> => {
        const keys = unlikeKeys(freshKey())
        await Promise.all(keys.map((key) => door.swap({ key, version: undefined, value: bytesOf(key), ttlMs: TTL_MS })))
        const states = await Promise.all(keys.map((key) => door.read(key)))
        for (const [i, key] of keys.entries()) {
          expect(
            textOf(states[i] as (typeof states)[0]) === key,
            `the key ${JSON.stringify(key.slice(-12))} of ${key.length} characters was taken for another one, or not kept: hash keys that are too long`,
          )
        }
      }
      await Promise.all(doors.map(differ))
    },
  },
]
