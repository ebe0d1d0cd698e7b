import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { seedsFrom, shortOrLong } from 'sluicegate-testkit'
import { byIdMismatch } from 'sluicegate-testkit/holds/by-id-history.js'
import { GivenTime } from 'sluicegate-testkit/redis/given-time.js'
import { type OwnRedis, ownRedis } from 'sluicegate-testkit/redis/own-redis.js'
import { createLimiter } from '../create-limiter.js'
import { redisOver } from './redis.js'

const HISTORIES = shortOrLong(30, 300)
/** A fault is found by one of so many. */
const UNTIL_FOUND = 60

let redis: OwnRedis
let histories = 0
before(async () => {
  redis = await ownRedis()
})
after(() => redis.stop())

function mismatch(seed: number, plant?: (source: string) => string): Promise<string | undefined> {
  const prefix = `history ${++histories}`
  return byIdMismatch(seed, (policy, clock) => {
    const store = redisOver(new GivenTime(redis.runner, clock, plant), { prefix })
    return createLimiter(policy, { store, clock, mode: 'exact', outage: 'closed', timeout: 60_000 })
  })
}

test(`work by id goes over Redis as the model says, in ${HISTORIES} random histories`, async () => {
  for (const seed of seedsFrom(1, HISTORIES)) assert.equal(await mismatch(seed), undefined)
})

/** Passages of `lua/scripts/hold.lua`, and of `lua/steps/holds.lua`. */
const FAULTS: readonly (readonly [fault: string, from: string, to: string])[] = [
  ['a step that is said twice counts twice', 'local isAgain=isRecorded and call==known.call', 'local isAgain=false'],
  ['closed work spends', 'isRecorded and not isAgain and known.closed==1', 'false'],
  ['a step counts after a later one', 'isRecorded and call<known.call', 'false'],
  ['work has no bound', 'recordKey and most>=0 and total<0 and known.used+spent>most', 'false'],
  ['what was added is charged again at the close', 'spent=math.max(total - known.used,0)end', 'spent=total end'],
  ['a slot that has ended counts', 'if slot.us>now and slot.us<=now+LONGEST_HOLD_US then', 'if true then'],
  ['what others hold is free', 'part.encoding.room(part)- part.held+part.own', 'part.encoding.room(part)+part.own'],
  ['a close frees nothing', 'if part.own>0 then moveHeld(part,part.ownUs,-part.ownHeld,-part.ownGranted)end', ' '],
]

for (const [fault, from, to] of FAULTS) {
  test(`a script by which ${fault} would be found`, async () => {
    let planted = 0
    const plant = (source: string): string => {
      const parts = source.split(from)
      planted += parts.length - 1
      return parts.join(to)
    }
    let found: string | undefined
    for (const seed of seedsFrom(1, UNTIL_FOUND)) {
      found ??= await mismatch(seed, plant)
      if (found !== undefined) break
    }
    assert.ok(planted > 0, 'the passage stands there no more')
    assert.notEqual(found, undefined)
  })
}
