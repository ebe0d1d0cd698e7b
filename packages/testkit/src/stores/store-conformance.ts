import { type ConformanceChoice, conformance } from '../conformance.js'
import { IS_LONG_RUN } from '../run-length.js'
import type { MakeOver } from './store-limiters.js'

type Part = NonNullable<ConformanceChoice['shared']>[number]
type AlgorithmName = NonNullable<ConformanceChoice['algorithms']>[number]

const HOLDS: readonly Part[] = ['holds', 'lapsedHolds', 'heldLevels', 'updatedHolds', 'holdsById']
/** Not `table` and `statsAndEvents`: a store has no table that fills, but that of a primary process. */
const PARTS: readonly Part[] = ['verbs', 'blocks', 'budget', 'time', 'misuse', 'reserving', 'denialEvents', 'updates', 'waiting', ...HOLDS]
/** Of algorithms that are asked less: what differs by the store. */
const FEWER: readonly Part[] = ['verbs', 'budget', 'updates', ...HOLDS]
const ALL: readonly AlgorithmName[] = ['token bucket', 'gcra', 'sliding log', 'fixed window', 'sliding window', 'all-of']

/** How a store is examined. */
export interface StoreExam {
  /** How much of the long random runs is made. */
  readonly share: number
  /** The algorithms of a short run; one of them waits. */
  readonly inShortRun: readonly [AlgorithmName, ...AlgorithmName[]]
  /** The algorithms that a long run asks everything, default all; the others are asked less. */
  readonly whole?: readonly AlgorithmName[]
  /** Those of which a long run asks what is true of them alone, default a rate and several policies at once. */
  readonly own?: readonly AlgorithmName[]
  /** What the store does not offer, or not as one limiter alone sees it. */
  readonly without?: readonly Part[]
  /** Whether keys are in a table, whose counters are known. */
  readonly hasTable?: boolean
  /** Whether tokens are leased by the limiter over it, default true. */
  readonly isLeased?: boolean
  /** Larger steps back of the clock are bounded by what the store computes itself. */
  readonly furthestBackMs?: number
}

/** The one suite on limiters over a store, exact and leased; a short run samples it: stores have their kit and the oracle as well. */
export function conformanceOverStore(name: string, make: MakeOver, exam: StoreExam): void {
  const {
    share,
    inShortRun,
    whole = ALL,
    own = ['token bucket', 'all-of'],
    without = [],
    hasTable = false,
    isLeased = true,
    furthestBackMs,
  } = exam
  const traits = {
    source: 'store',
    own: false,
    share,
    updatesLazily: true,
    ...(furthestBackMs !== undefined && { furthestBackMs }),
  } as const
  const asked = (parts: readonly Part[]): Part[] => parts.filter((part) => !without.includes(part))
  const exact = (algorithms: readonly AlgorithmName[], parts: readonly Part[], more: ConformanceChoice = {}): void =>
    conformance(`exact, ${name}`, make('exact'), { ...traits, algorithms, shared: asked(parts), ...more })
  const leased = (algorithms: readonly AlgorithmName[], parts: readonly Part[]): void => {
    if (isLeased) conformance(`leased, ${name}`, make('leased'), { ...traits, algorithms, shared: asked(parts) })
  }
  // Time runs back for the keys of a store, but not for those of the oracle: a permit lasts as long as it was to.
  const permits = (parts: readonly Part[]): void => exact(['concurrency'], parts, { furthestBackMs: 0 })

  if (!IS_LONG_RUN) {
    exact(inShortRun, FEWER, { furthestBackMs: 0 })
    exact([inShortRun[0]], ['waiting'])
    leased(['fixed window'], ['updates', 'denialEvents', ...HOLDS])
    return
  }
  exact(whole, [...PARTS, 'keys'])
  exact(
    ALL.filter((algorithm) => !whole.includes(algorithm)),
    FEWER,
  )
  permits(PARTS)
  if (!without.includes('updates')) exact(own, [], { own: true })
  if (hasTable) exact(['token bucket', 'all-of'], ['table'])

  // What a lease leaves as it is. Beside it the suite asks for the whole burst, of which a lease leaves a part to takes at the store.
  leased(['token bucket', 'fixed window'], ['keys'])
  // A window withholds nothing: remaining and spent tokens are the same after an update.
  leased(['fixed window'], ['denialEvents', 'updates'])
  // Limits too small to be leased run exact by themselves.
  leased(['fixed window', 'sliding log'], ['misuse', 'blocks'])
}
