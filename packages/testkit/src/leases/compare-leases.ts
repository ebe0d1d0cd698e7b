import assert from 'node:assert/strict'
import { changedPolicy } from '../../../sluicegate/dist/policy/policy.js'
import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import { encodingsOf, type PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { KeyState } from '../../../sluicegate/dist/shared/steps/step-answers.js'
import { StepBackend } from '../../../sluicegate/dist/shared/steps/step-backend.js'
import { Random } from '../random.js'
import { GivenTime } from '../redis/given-time.js'
import { type LeasedPolicy, randomVersions } from './lease-draws.js'
import type { LEASED_ENCODINGS } from './lease-history.js'
import { LeaseRecords } from './lease-records.js'
import { namesOf } from './lease-rules.js'

/** At once, each on a time of its own. */
const LANES = 24
const STEPS = 40

/**
 * Exact takes, leases and give-backs of one to three versions of a policy, at random and at given times: the scripts on a real server answer as
 * {@link LeaseRecords} do. Rejects at the first difference.
 */
export async function compareLeases(
  runner: CommandRunner,
  encoding: (typeof LEASED_ENCODINGS)[number],
  seeds: readonly number[],
): Promise<void> {
  const lane = async (_: unknown, first: number): Promise<void> => {
    const given = new GivenTime(runner)
    for (let i = first; i < seeds.length; i += LANES) await compared(seeds[i] as number, encoding, given)
  }
  await Promise.all(Array.from({ length: LANES }, lane))
}

async function compared(seed: number, encodingName: (typeof LEASED_ENCODINGS)[number], given: GivenTime): Promise<void> {
  const random = new Random(seed)
  const versions = named(randomVersions(random, [encodingName]))
  const { leaseUs: longUs, policy: first } = versions[0] as LeasedPolicy
  const records = new LeaseRecords(encodingName)
  const store = new RedisScripts(given, new RedisKeys(`${encodingName}${seed}`))
  given.nowUs = random.integer(1, 100_000_000)
  const lent: { readonly tokens: number; readonly leasedUs: number; readonly version: LeasedPolicy }[] = []
  for (let i = 0; i < STEPS; i++) {
    given.nowUs += random.chance(0.3) ? 0 : random.magnitude(1, random.pick([longUs, first.windowMs * 1500]))
    const { nowUs } = given
    const version = random.pick(versions)
    const { encoding, leaseUs } = version
    const about = `${namesOf(versions)}, seed ${seed}, step ${i}`
    const back = encodingName !== 'rate' && random.chance(0.2) ? lent.pop() : undefined
    if (back !== undefined) {
      const { leasedUs } = back
      const tokens = random.integer(1, back.tokens)
      const backend = new StepBackend(store, { encodings: [back.version.encoding], isAllOf: false }, String)
      await backend.execute({ verb: 'giveBack', key: 'k', charge: { grantId: leasedUs, part: 0, cost: tokens }, tokens })
      records.giveBack(back.version.encoding, nowUs, tokens, leasedUs)
    } else if (leaseUs > 0 && random.chance(0.6)) {
      const least = random.pick([1, 1, random.integer(1, 8)])
      const want = least + random.integer(0, 12)
      const lease = await store.lease(encoding, 'k', want, least)
      if (lease.tokens > 0) lent.push({ tokens: lease.tokens, leasedUs: nowUs, version })
      assert.deepEqual(lease, records.lease(encoding, nowUs, want, least), about)
    } else {
      const cost = random.integer(1, 4)
      const { states } = await store.ask('take', [{ encoding, key: 'k', tokens: cost }])
      const { done, untilNewUs } = states[0] as KeyState
      const taken = records.take(encoding, nowUs, cost)
      assert.deepEqual({ allowed: done, untilNewUs }, taken, about)
      if (encoding.name !== 'rate' && !done)
        assert.equal((states[0] as KeyState).untilFreeUs, records.untilFreeUs(encoding, nowUs, cost), about)
    }
  }
}

/** All of one name, by which the store knows them for one policy. */
function named(versions: readonly LeasedPolicy[]): readonly LeasedPolicy[] {
  return versions.map(({ policy, leaseUs, horizonMs }) => {
    const own = changedPolicy(policy, { name: 'policy' })
    return { policy: own, leaseUs, horizonMs, encoding: encodingsOf(own, () => leaseUs).encodings[0] as PolicyEncoding }
  })
}
