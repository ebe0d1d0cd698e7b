import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ALGORITHM_NAMES,
  type Answer,
  mismatchIn,
  oracleAnswers,
  type Sequence,
  seedsOf,
  sequenceOf,
  shortOrLong,
} from 'sluicegate-testkit'
import { channelPair, turns } from 'sluicegate-testkit/cluster/channel-pair.js'
import { FleetReplay, namedPolicy } from 'sluicegate-testkit/twins/fleet-replay.js'
import { createLimiter } from '../create-limiter.js'
import { manualClock } from '../time/clock.js'
import { primary } from './primary.js'
import { serveLimiter } from './serve-limiter.js'

const SEQUENCES = shortOrLong(5, 20)
const TIMEOUT_MS = 60_000

for (const algorithm of ALGORITHM_NAMES) {
  test(`${algorithm}: over a channel every verb answers what the oracle says, updates included, over ${SEQUENCES} random sequences`, async () => {
    for (const seed of seedsOf(algorithm, SEQUENCES)) {
      const sequence = sequenceOf(seed, algorithm)
      const mismatch = mismatchIn(sequence, oracleAnswers(sequence), await answersOverChannel(sequence))
      assert.equal(mismatch, undefined, `seed ${seed}: ${JSON.stringify(mismatch)}`)
    }
  })
}

async function answersOverChannel({ policy, steps }: Sequence): Promise<(Answer | undefined)[]> {
  const clock = manualClock(steps[0]?.atMs)
  const { worker, parent } = channelPair()
  const served = serveLimiter(namedPolicy(policy), { mode: 'exact', maxKeys: 64, clock })
  served.serve(worker)
  const limiter = createLimiter(namedPolicy(policy), {
    store: primary({ process: parent }),
    clock,
    timeout: TIMEOUT_MS,
    outage: 'closed',
  })
  const replay = new FleetReplay({ limiter, set: (ms) => clock.set(ms) })
  const answers: (Answer | undefined)[] = []
  for (const step of steps) {
    answers.push(await replay.answer(step))
    // It is sent without waiting for an answer.
    if (step.verb === 'update') await turns()
  }
  replay.close()
  served.close()
  return answers
}
