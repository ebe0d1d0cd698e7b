import type { CasSwap } from '../store/cas-store.js'
import { bytesOf, type Examined, expect, repeated, type StoreCheck, TTL_MS, textOf, unlikeKeys } from './store-check.js'

const ROUNDS = 10
const WRITERS = 8
/** Keys of one call: more than some stores take in one of theirs. */
const MANY = 120
/** As many as a limiter swaps together at most. */
const MOST_TOGETHER = 32
const RACED = 6
const MOST_TRIES = 1000

/** What several keys promise, where the store has transactions. */
export const swapAllChecks: readonly StoreCheck[] = [
  {
    name: 'several swaps are all made, or none',
    async run({ one, other, freshKey }) {
      if (one.swapAll === undefined) return
      const [a, b] = [freshKey(), freshKey()]
      const both = [swapOf(a, undefined, 'a1'), swapOf(b, undefined, 'b1')]
      const made = await one.swapAll(both)
      expect(
        made.swapped && textsOf(made.states).join() === 'a1,b1',
        'swapAll() must make all swaps where all versions fit, and give their states in order',
      )
      const versions = made.states.map(({ version }) => version)
      const lost = await other.swapAll?.([swapOf(a, versions[0], 'a2'), swapOf(b, undefined, 'b2')])
      expect(lost?.swapped === false, 'swapAll() must not be made where one version does not fit')
      const read = await one.readAll?.([a, b])
      expect(textsOf(read ?? [await one.read(a), await one.read(b)]).join() === 'a1,b1', 'swapAll() was made in part: use one transaction')
      expect(textsOf(lost?.states ?? []).join() === 'a1,b1', 'a swapAll() that is not made must give the states that are there')
    },
  },
  {
    name: 'of many swaps in one call each is made for itself',
    async run({ one, other, freshKey }) {
      if (one.swapMany === undefined) return
      const [a, b, c, d] = [freshKey(), freshKey(), freshKey(), freshKey()]
      const first = await one.swapMany([swapOf(b, undefined, 'b1'), swapOf(a, undefined, 'a1')])
      expect(
        first.every(({ swapped }) => swapped) && textsOf(first.map(({ state }) => state)).join() === 'b1,a1',
        'swapMany() must make all swaps that fit, and give their outcomes in order',
      )
      const from = first[0]?.state.version
      const swaps = [swapOf(d, from, 'd2'), swapOf(c, undefined, 'c2'), swapOf(b, from, 'b2'), swapOf(a, undefined, 'a2')]
      const mixed = await other.swapMany?.(swaps)
      expect(
        mixed?.map(({ swapped }) => swapped).join() === 'false,true,true,false',
        'swapMany() must make each swap whose version fits, and no other: it is no transaction',
      )
      const states = [await one.read(d), await one.read(c), await one.read(b), await one.read(a)]
      expect(
        states.every(({ version }, i) => mixed?.[i]?.state.version === version) &&
          textsOf(states).join() === ',c2,b2,a1' &&
          textsOf(mixed?.map(({ state }) => state) ?? []).join() === ',c2,b2,a1',
        'swapMany() must give what is there afterwards, with its version, for each key',
      )
    },
  },
  {
    name: 'many swaps in one call are all made, whatever their keys and values',
    async run({ one, other, freshKey }) {
      for (const call of ['swapMany', 'swapAll'] as const) {
        if (one[call] === undefined) continue
        const begin = freshKey()
        const own = [...unlikeKeys(begin), ...Array.from({ length: MANY }, (_, i) => `${begin}${i}`)]
        const keys = call === 'swapMany' ? own : own.slice(0, MOST_TOGETHER)
        const textFor = (i: number, round: string): string => `${round} ${keys[i]} ${'v'.repeat(i * 20)}`
        let versions: readonly CasSwap['version'][] = keys.map(() => undefined)
        for (const round of ['new', 'changed']) {
          const store = round === 'new' ? one : other
          const swaps = keys.map((key, i) => swapOf(key, versions[i], textFor(i, round)))
          const all = call === 'swapAll' ? await store.swapAll?.(swaps) : undefined
          const outcomes = all?.states.map((state) => ({ swapped: all.swapped, state })) ?? (await store.swapMany?.(swaps)) ?? []
          const states = other.readAll === undefined ? await Promise.all(keys.map((key) => other.read(key))) : await other.readAll(keys)
          for (const [i, key] of keys.entries()) {
            const state = states[i] as (typeof states)[0]
            expect(
              outcomes[i]?.swapped === true && textOf(state) === textFor(i, round) && state.version === outcomes[i]?.state.version,
              `of ${keys.length} swaps in one ${call}() number ${i + 1} was not made, its key ends with ${JSON.stringify(key.slice(-6))}`,
            )
          }
          versions = states.map(({ version }) => version)
        }
      }
    },
  },
  {
    name: 'of calls with many swaps that race from one version exactly one makes each',
    async run({ one, other, freshKey }) {
      if (one.swapMany === undefined) return
      const keys = Array.from({ length: RACED }, freshKey)
      let versions: readonly CasSwap['version'][] = keys.map(() => undefined)
      await repeated(ROUNDS, async (round) => {
        const race = Array.from({ length: WRITERS }, (_, i) => {
          const store = i % 2 === 0 ? one : other
          const swaps = keys.map((key, k) => swapOf(key, versions[k], `${round} ${i}`))
          // Others swap one of the keys alone.
          return i < 2
            ? Promise.all([store.swap(swaps[i] as CasSwap)])
            : (store.swapMany?.(i % 3 === 0 ? [...swaps].reverse() : swaps) ?? [])
        })
        const outcomes = await Promise.all(race)
        const states = await Promise.all(keys.map((key) => one.read(key)))
        for (const [k, state] of states.entries()) {
          const won = outcomes.flatMap((made, i) => {
            const at = i < 2 ? (k === i ? 0 : -1) : i % 3 === 0 ? keys.length - 1 - k : k
            return made[at]?.swapped === true ? [`${round} ${i}`] : []
          })
          expect(
            won.length === 1,
            `${won.length} of ${WRITERS} swaps of a key from one version were made, and one must be: compare and write in one step`,
          )
          expect(won[0] === textOf(state), 'after a race the value of the winner must be there')
        }
        versions = states.map(({ version }) => version)
      })
    },
  },
  {
    name: 'swaps of the same keys in another order do not block each other',
    async run({ one, other, freshKey }) {
      if (one.swapAll === undefined) return
      const [a, b] = [freshKey(), freshKey()]
      let made = 0
      const counted = async (examined: Examined['one'], keys: readonly string[]): Promise<void> => {
        let own = 0
        await repeated(MOST_TRIES, async () => {
          const states = await Promise.all(keys.map((key) => examined.read(key)))
          const swaps = keys.map((key, i) => swapOf(key, states[i]?.version, String(Number(textsOf(states)[i] ?? 0) + 1)))
          if ((await examined.swapAll?.(swaps))?.swapped === true) {
            own++
            made++
          }
          return own === ROUNDS
        })
      }
      await Promise.all([counted(one, [a, b]), counted(other, [b, a]), counted(one, [b, a]), counted(other, [a, b])])
      const left = [textOf(await one.read(a)), textOf(await one.read(b))]
      expect(made > 0, 'swaps of two keys were not made')
      expect(
        left.every((text) => text === String(made)),
        `${made} increments of two keys left ${left.join(' and ')}: updates are lost`,
      )
    },
  },
]

function swapOf(key: string, version: CasSwap['version'], text: string): CasSwap {
  return { key, version, value: bytesOf(text), ttlMs: TTL_MS }
}

function textsOf(states: readonly Parameters<typeof textOf>[0][]): readonly (string | undefined)[] {
  return states.map(textOf)
}
