import { test } from 'node:test'
import fc from 'fast-check'
import { firstMismatch, Random, type RateSpec, randomPolicy, replayedInMemory, type Sequence, type Step } from 'sluicegate-testkit'

// The same comparison as the seeded sequences', by a library that shrinks what fails to its shortest.

const RUNS = 5000
const SEED = 20_260_921

test(`the limiter answers as the oracle does in ${RUNS} sequences that shrink`, () => {
  fc.assert(
    fc.property(sequences(), (sequence) => {
      const replayed = replayedInMemory(sequence)
      const mismatch = firstMismatch(sequence, replayed)
      for (const end of replayed.ends) end.close()
      return mismatch === undefined
    }),
    { numRuns: RUNS, seed: SEED },
  )
})

type Move = (place: Place, policy: RateSpec) => Step
type Place = Pick<Step, 'atMs' | 'key' | 'end'>

function sequences(): fc.Arbitrary<Sequence> {
  const moves = fc.array(fc.tuple(gapsMs(), calls(), fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 0, max: 2 })), {
    minLength: 1,
    maxLength: 30,
  })
  return fc
    .record({ algorithm: fc.constantFrom('gcra' as const, 'token-bucket' as const), policy: policies(), moves })
    .map(({ algorithm, policy, moves }) => {
      let atMs = 1_789_000_000_000
      let current = policy
      const steps = moves.map(([gapMs, call, key, end]) => {
        atMs += gapMs
        const step = call({ atMs, key, end }, current)
        if (step.verb === 'update') current = step.policy
        return step
      })
      return { algorithm, policy, steps }
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

function policies(): fc.Arbitrary<RateSpec> {
  const small = fc.record({
    limit: fc.integer({ min: 1, max: 100 }),
    windowMs: fc.integer({ min: 1, max: 10_000 }),
    burst: fc.integer({ min: 1, max: 100 }),
  })
  const any = fc.integer({ min: 0, max: 2 ** 31 - 1 }).map((seed) => randomPolicy(new Random(seed)))
  return fc.oneof(small, any)
}

function calls(): fc.Arbitrary<Move> {
  const share = fc.double({ min: 0, max: 1.2, noNaN: true })
  const tokens = (part: number, { burst }: RateSpec): number => Math.max(1, Math.ceil(part * burst))
  return fc.oneof(
    {
      weight: 6,
      arbitrary: fc.tuple(fc.constantFrom('take' as const, 'peek' as const), share).map(
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
      arbitrary: policies().map(
        (policy): Move =>
          (place) => ({ ...place, verb: 'update', policy }),
      ),
    },
  )
}
