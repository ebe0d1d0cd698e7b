import type { CasState, CasStore, CasSwap } from '../store/cas-store.js'

/** One key of a store. */
type Door = Pick<CasStore, 'name' | 'read' | 'swap'>

/**
 * The ways in which a store reads and swaps a key: alone, and where it takes several keys, beside another key in one call of each kind. What one key
 * promises holds by all of them.
 */
export function doorsOf(store: CasStore, freshKey: () => string): readonly Door[] {
  const beside = ({ value, ttlMs }: CasSwap): CasSwap => ({ key: freshKey(), version: undefined, value, ttlMs })
  const read = async (key: string): Promise<CasState> => {
    const states = await store.readAll?.([freshKey(), key])
    return states === undefined ? store.read(key) : (states[1] as CasState)
  }
  const doors: Door[] = [store]
  if (store.swapMany !== undefined) {
    const swap: CasStore['swap'] = async (own) => (await store.swapMany?.([beside(own), own]))?.[1] as Awaited<ReturnType<CasStore['swap']>>
    doors.push({ name: 'swapMany()', read, swap })
  }
  if (store.swapAll !== undefined) {
    const swap: CasStore['swap'] = async (own) => {
      const outcome = await store.swapAll?.([beside(own), own])
      return { swapped: outcome?.swapped === true, state: outcome?.states[1] as CasState }
    }
    doors.push({ name: 'swapAll()', read, swap })
  }
  return doors
}

/** The store, whose calls for one key go by each of its doors in turns. */
export function byTurns(store: CasStore, doors: readonly Door[]): CasStore {
  let turns = 0
  const next = (): Door => doors[turns++ % doors.length] as Door
  return {
    name: store.name,
    read: (key) => next().read(key),
    swap: (swap) => next().swap(swap),
    ...(store.readAll && { readAll: (keys) => store.readAll?.(keys) ?? Promise.reject() }),
    ...(store.swapAll && { swapAll: (swaps) => store.swapAll?.(swaps) ?? Promise.reject() }),
    ...(store.swapMany && { swapMany: (swaps) => store.swapMany?.(swaps) ?? Promise.reject() }),
    ...(store.step && { step: (groups) => store.step?.(groups) ?? Promise.reject() }),
  }
}
