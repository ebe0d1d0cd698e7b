import { test } from 'node:test'
import fc from 'fast-check'
import {
  type AlgorithmName,
  firstMismatch,
  mostCost,
  nextPolicy,
  type PolicySpec,
  Random,
  randomPolicyOf,
  randomRate,
  replayedInMemory,
  type Sequence,
  type Step,
  shortOrLong,
  VECTOR_ALGORITHMS,
} from 'sluicegate-testkit'

// The same comparison as the seeded sequences', by a library that shrinks what fails to its shortest.

const RUNS_OF_RATES = shortOrLong(120, 500)
const RUNS = shortOrLong(30, 150)
const SEED = 20_260_921
const START_MS = 1_789_000_000_000

for (const algorithm of VECTOR_ALGORITHMS) {
  const numRuns = algorithm === 'gcra' || algorithm === 'token-bucket' ? RUNS_OF_RATES : RUNS
  test(`${algorithm} answers as the oracle does in ${numRuns} sequences that shrink`, () => {
    fc.assert(
      fc.property(sequences(algorithm), (sequence) => {
        const replayed = replayedInMemory(sequence)
        const mismatch = firstMismatch(sequence, replayed)
        for (const end of replayed.ends) end.close()
        return mismatch === undefined
      }),
      { numRuns, seed: SEED },
    )
  })
}

type Move = (place: Place, policy: PolicySpec) => Step
type Place = Pick<Step, 'atMs' | 'key' | 'end'>

function sequences(algorithm: AlgorithmName): fc.Arbitrary<Sequence> {
  const moves = fc.array(fc.tuple(gapsMs(), calls(algorithm), fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 2 })), {
    minLength: 1,
    maxLength: 30,
  })
  return fc.record({ policy: policies(algorithm), moves }).map(({ policy, moves }) => {
    let atMs = START_MS
    let current = policy
    const steps = moves.map(([gapMs, call, key, end]) => {
      atMs += gapMs
      const step = call({ atMs, key, end }, current)
      if (step.verb === 'update') current = step.policy
      return step
    })
    return { policy, steps }
  })
}

/** Forward only: microseconds, milliseconds, or up to 46 days. */
function gapsMs(): fc.Arbitrary<number> {
  const wholeUs = fc.oneof(
    fc.integer({ min: 0, max: 5 }),
    fc.integer({ min: 0, max: 2_000_000 }),
    fc.integer({ min: 0, max: 4_000_000_000_000 }),
  )
  return wholeUs.map((us) => us / 1000)
}

function policies(algorithm: AlgorithmName): fc.Arbitrary<PolicySpec> {
  const counts = fc.record({ limit: fc.integer({ min: 1, max: 100 }), windowMs: fc.integer({ min: 1, max: 10_000 }) })
  const any = randoms().map((random) => randomPolicyOf(random, algorithm, true))
  switch (algorithm) {
    case 'token-bucket':
    case 'gcra': {
      const small = fc.tuple(counts, fc.integer({ min: 1, max: 100 })).map(([count, burst]) => ({ algorithm, ...count, burst }))
      return fc.oneof(
        small,
        randoms().map((random) => ({ algorithm, ...randomRate(random) })),
      )
    }
    case 'sliding-log':
      return fc.oneof(
        fc.tuple(counts, fc.constantFrom<4 | 8>(4, 8)).map(([count, slotBytes]) => ({ algorithm, ...count, slotBytes })),
        any,
      )
    case 'all-of':
      return any
    default:
      return fc.oneof(
        counts.map((count) => ({ algorithm, ...count })),
        any,
      )
  }
}

function randoms(): fc.Arbitrary<Random> {
  return fc.integer({ min: 0, max: 2 ** 31 - 1 }).map((seed) => new Random(seed))
}

function calls(algorithm: AlgorithmName): fc.Arbitrary<Move> {
  const share = fc.double({ min: 0, max: 1.2, noNaN: true })
  const tokens = (part: number, policy: PolicySpec): number => Math.max(1, Math.ceil(part * mostCost(policy)))
  const which = fc.integer({ min: 0, max: 30 })
  const spending = fc.tuple(fc.constantFrom('take' as const, 'take' as const, 'peek' as const, 'reserve' as const), share)
  const later: fc.Arbitrary<Move>[] = [
    fc.tuple(which, share).map(
      ([booking, part]): Move =>
        (place, policy) => ({ ...place, verb: 'settle', booking, actual: tokens(part, policy) - 1 }),
    ),
    which.map(
      (booking): Move =>
        (place) => ({ ...place, verb: 'cancel', booking }),
    ),
  ]
  if (algorithm === 'concurrency') {
    later.push(
      fc.tuple(fc.constantFrom('release' as const, 'heartbeat' as const), which).map(
        ([verb, permit]): Move =>
          (place) => ({ ...place, verb, permit }),
      ),
    )
  }
  return fc.oneof(
    {
      weight: 6,
      arbitrary: spending.map(
        ([verb, part]): Move =>
          (place, policy) => ({ ...place, verb, cost: tokens(part, policy) }),
      ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.constantFrom('refund' as const, 'penalize' as const), share).map(
        ([verb, part]): Move =>
          (place, policy) => ({ ...place, verb, tokens: tokens(part * 3, policy) }),
      ),
    },
    { weight: 2, arbitrary: fc.oneof(...later) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 0, max: 100_000_000 }).map(
        (us): Move =>
          (place) => ({ ...place, verb: 'block', durationMs: us / 1000 }),
      ),
    },
    { weight: 1, arbitrary: fc.constant<Move>((place) => ({ ...place, verb: 'reset' })) },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 0, max: 2 ** 31 - 1 }).map(
        (seed): Move =>
          (place, policy) => ({ ...place, verb: 'update', policy: nextPolicy(new Random(seed), policy, true) }),
      ),
    },
  )
}
