import type { CasSwap } from '../store/cas-store.js'
import { bytesOf, type Examined, expect, type StoreCheck, TTL_MS, textOf } from './store-check.js'

const ROUNDS = 10
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
    name: 'swaps of the same keys in another order do not block each other',
    async run({ one, other, freshKey }) {
      if (one.swapAll === undefined) return
      const [a, b] = [freshKey(), freshKey()]
      const counted = async (examined: Examined['one'], keys: readonly string[]): Promise<void> => {
        for (let done = 0, tries = 0; done < ROUNDS; tries++) {
          expect(tries < MOST_TRIES, `${MOST_TRIES} swaps of two keys were not made`)
          const states = await Promise.all(keys.map((key) => examined.read(key)))
          const swaps = keys.map((key, i) => swapOf(key, states[i]?.version, String(Number(textsOf(states)[i] ?? 0) + 1)))
          const outcome = await examined.swapAll?.(swaps)
          if (outcome?.swapped) done++
        }
      }
      await Promise.all([counted(one, [a, b]), counted(other, [b, a]), counted(one, [b, a]), counted(other, [a, b])])
      const left = [textOf(await one.read(a)), textOf(await one.read(b))]
      expect(
        left.every((text) => text === String(4 * ROUNDS)),
        `${4 * ROUNDS} increments of two keys left ${left.join(' and ')}: updates are lost`,
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
