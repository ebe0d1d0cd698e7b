import type { SharedStats } from 'sluicegate'

/** What a limiter did whose budget has its home in another store. */
export type RegionFigures = NonNullable<SharedStats['region']>

const COUNTS = ['homeCalls', 'homeFailures', 'renewals', 'renewedTokens', 'accountedTokens'] as const

/**
 * Several limiters or processes of one region together; what is no count is that of the last. Undefined without any. The library does so for
 * tiers; a service that has its keys in memory would load all of `sluicegate/redis` for it.
 */
export function sumOfRegion(all: readonly (RegionFigures | undefined)[]): RegionFigures | undefined {
  const regions = all.filter((each) => each !== undefined)
  const last = regions.at(-1)
  if (last === undefined) return undefined
  const sums = Object.fromEntries(COUNTS.map((count) => [count, regions.reduce((sum, each) => sum + each[count], 0)]))
  return { ...last, ...sums, isHomeOut: regions.some(({ isHomeOut }) => isHomeOut) }
}

/** The part of an engine that knows of a home. */
interface Regional {
  readonly storage: { readonly isHomeReachable?: boolean | undefined }
  readonly policies: Iterable<{ region(): RegionFigures | undefined }>
}

/** A line for people while the home cannot be reached; undefined otherwise. */
export function homeNote({ storage, policies }: Regional): string | undefined {
  const regions = Array.from(policies).flatMap((served) => served.region() ?? [])
  const out = storage.isHomeReachable === false ? regions[0] : regions.find(({ isHomeOut }) => isHomeOut)
  return out && `the home of the budgets is out: region ${out.region} goes on with its share`
}
