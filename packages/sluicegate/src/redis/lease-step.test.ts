import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Random } from 'sluicegate-testkit'
import { changedPolicy } from '../policy/policy.js'
import { GivenTime } from '../testing/given-time.js'
import { type LeasedPolicy, randomVersions } from '../testing/lease-draws.js'
import { LEASED_FORMS } from '../testing/lease-excess.js'
import { LeaseRecords } from '../testing/lease-records.js'
import { type OwnRedis, ownRedis } from '../testing/own-redis.js'
import { namesOf } from '../testing/version-bound.js'
import { RedisStore } from './redis-store.js'
import type { StoreLease, StoreStanding } from './store.js'
import { StoreAuthority } from './store-authority.js'
import { type StoreForm, storePoliciesOf } from './store-form.js'
import { StoreKeys } from './store-keys.js'

// What the histories of leases run on is what the scripts do.

const SEQUENCES = 240
/** At once, each on a time of its own. */
const LANES = 24
const STEPS = 40

let redis: OwnRedis

before(async () => {
  redis = await ownRedis()
})

after(() => redis.stop())

for (const form of LEASED_FORMS) {
  test(`the authority of the histories decides as the scripts of a ${form} do, also for several versions of a policy`, async () => {
    const lane = async (_: unknown, first: number): Promise<void> => {
      const given = new GivenTime(redis.runner)
      for (let seed = first + 1; seed <= SEQUENCES; seed += LANES) await compared(seed, form, given)
    }
    await Promise.all(Array.from({ length: LANES }, lane))
  })
}

async function compared(seed: number, formName: (typeof LEASED_FORMS)[number], given: GivenTime): Promise<void> {
  const random = new Random(seed)
  const versions = named(randomVersions(random, [formName]))
  const { leaseUs: longUs, policy: first } = versions[0] as LeasedPolicy
  const records = new LeaseRecords(formName)
  const store = new RedisStore(given, new StoreKeys(`${formName}${seed}`))
  given.nowUs = random.integer(1, 100_000_000)
  const lent: { readonly tokens: number; readonly leasedUs: number; readonly version: LeasedPolicy }[] = []
  for (let i = 0; i < STEPS; i++) {
    given.nowUs += random.chance(0.3) ? 0 : random.magnitude(1, random.pick([longUs, first.windowMs * 1500]))
    const { nowUs } = given
    const version = random.pick(versions)
    const { form, leaseUs, horizonMs } = version
    const about = `${namesOf(versions)}, seed ${seed}, step ${i}`
    const back = formName !== 'rate' && random.chance(0.2) ? lent.pop() : undefined
    if (back !== undefined) {
      const { leasedUs } = back
      const tokens = random.integer(1, back.tokens)
      await new StoreAuthority(store, back.version.form, back.version.leaseUs).giveBack('k', tokens, leasedUs)
      records.giveBack(back.version.form, nowUs, tokens, leasedUs)
    } else if (leaseUs > 0 && random.chance(0.6)) {
      const least = random.pick([1, 1, random.integer(1, 8)])
      const want = least + random.integer(0, 12)
      const horizonUs = random.pick([horizonMs * 1000, random.integer(0, leaseUs)])
      const lease = await store.lease(form, 'k', want, horizonUs, least)
      if (lease.ready + lease.later > 0) lent.push({ tokens: lease.ready + lease.later, leasedUs: nowUs, version })
      assert.deepEqual(lease, ordered(records.lease(form, nowUs, want, least, horizonUs)), about)
    } else {
      const cost = random.integer(1, 4)
      const { standings } = await store.ask('take', [{ form, key: 'k', tokens: cost }])
      const { done, untilNewUs } = standings[0] as StoreStanding
      const taken = records.take(form, nowUs, cost)
      assert.deepEqual({ allowed: done, untilNewUs }, taken, about)
      if (form.form !== 'rate' && !done)
        assert.equal((standings[0] as StoreStanding).untilFreeUs, records.untilFreeUs(form, nowUs, cost), about)
    }
  }
}

/** All of one name, by which the store knows them for one policy. */
function named(versions: readonly LeasedPolicy[]): readonly LeasedPolicy[] {
  return versions.map(({ policy, leaseUs, horizonMs }) => {
    const own = changedPolicy(policy, { name: 'policy' })
    return { policy: own, leaseUs, horizonMs, form: storePoliciesOf(own, () => leaseUs).forms[0] as StoreForm }
  })
}

function ordered({ nowUs, ready, later, debt, blockedUs, untilFreeUs, untilNewUs, laterUs, endUs }: StoreLease): StoreLease {
  return { nowUs, ready, later, debt, blockedUs, untilFreeUs, untilNewUs, laterUs, endUs }
}
