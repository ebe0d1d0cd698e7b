import type { SharedOptions } from 'sluicegate'
import { createLimiter, tokenBucket } from 'sluicegate'
import { redis } from 'sluicegate/redis'
import { FleetLoad, Random, type RateSpec } from 'sluicegate-testkit'
import type { OpenClient } from './clients.js'
import { LOCAL_SHARE, type Subject, TIMEOUT_MS } from './subject.js'

/** What one process of a fleet runs with. */
export interface Version {
  readonly limit: number
  readonly burst: number
  readonly options?: Pick<SharedOptions, 'mode' | 'lease'>
}

/** Processes that share one budget with different settings. */
export interface Mix {
  readonly name: string
  readonly versions: readonly Version[]
  /** Whether each process changes to the next version while a primary is gone. */
  readonly isRolling?: boolean
}

const WINDOW_MS = 5000
const BASE: Version = { limit: 200, burst: 200 }
const LARGER: Version = { limit: 200, burst: 210 }
const SLOWER: Version = { limit: 180, burst: 200 }

export const MIXES: readonly Mix[] = [
  { name: 'two bursts', versions: [BASE, LARGER] },
  { name: 'two limits', versions: [BASE, SLOWER] },
  { name: 'exact and leased', versions: [{ ...BASE, options: { mode: 'exact' } }, BASE] },
  { name: 'two horizons', versions: [BASE, { ...BASE, options: { lease: 200 } }] },
  { name: 'rolling change', versions: [LARGER, SLOWER], isRolling: true },
]

/** What all versions may pass together: the largest burst, and the highest rate. */
export function boundOf(versions: readonly Version[]): RateSpec {
  return {
    limit: Math.max(...versions.map(({ limit }) => limit)),
    windowMs: WINDOW_MS,
    burst: Math.max(...versions.map(({ burst }) => burst)),
  }
}

/** One subject for each mix: its versions run over the clients in turn, and each take goes to one of them at random. */
export function mixedSubjectsOn(clients: readonly OpenClient[], keys: readonly string[], seed: number): Subject[] {
  return MIXES.map((mix, i) => mixedSubject(mix, clients, keys, new Random(seed + i)))
}

function mixedSubject(
  { name, versions, isRolling }: Mix,
  clients: readonly OpenClient[],
  keys: readonly string[],
  random: Random,
): Subject {
  const limiters = versions.map(({ options, ...version }, i) => {
    const { client } = clients[i % clients.length] as OpenClient
    return createLimiter(policyOf(version), {
      store: redis(client, { prefix: name }),
      localShare: LOCAL_SHARE,
      timeout: TIMEOUT_MS,
      ...options,
    })
  })
  let changes = 0
  const take = (key: string) => random.pick(limiters).take(key)
  return {
    name,
    bound: boundOf(versions),
    processes: limiters.length,
    limiter: { stats: () => limiters.map((limiter) => limiter.stats()) },
    load: new FleetLoad({ take }, { keys, callers: 4 * keys.length, restMs: 5 }),
    primaryGone: () => {
      if (!isRolling) return
      changes++
      for (const [i, limiter] of limiters.entries()) limiter.update(policyOf(versions[(i + changes) % versions.length] as Version))
    },
  }
}

function policyOf({ limit, burst }: Pick<Version, 'limit' | 'burst'>) {
  return tokenBucket({ limit, window: WINDOW_MS, burst, name: 'chaos' })
}
