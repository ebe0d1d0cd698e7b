import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { tokenBucket } from 'sluicegate'
import { leaseStepOf } from 'sluicegate-testkit/leases/lease-step-of.js'
import { SOUND_RECORDS } from 'sluicegate-testkit/twins/lease-step.js'
import { KeyLease } from '../../../packages/sluicegate/dist/lease/key-lease.js'
import { leaseUsOf } from '../../../packages/sluicegate/dist/lease/leasing.js'
import { encodingsOf, type PolicyEncoding } from '../../../packages/sluicegate/dist/redis/policy-encoding.js'
import { grantsOf } from '../../../packages/sluicegate/dist/redis/script-call.js'

const KEYS = 20_000
const HORIZON_MS = 50

/** Memory of a node for a key with a lease. */
export function nodeKeyBytes(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const leaseUs = leaseUsOf(HORIZON_MS)
  const encoding = encodingsOf(tokenBucket({ limit: 100, window: '1s' }), () => leaseUs).encodings[0] as PolicyEncoding
  const grantOf = grantsOf(encoding, leaseUs)
  const step = leaseStepOf(encoding, encoding.numbersAt(0).split(' ').map(Number), SOUND_RECORDS)
  collect()
  const before = process.memoryUsage().heapUsed
  const leases = new Map<string, KeyLease>()
  for (let key = 0; key < KEYS; key++) {
    const lease = new KeyLease(0, HORIZON_MS * 1000, 100)
    lease.addGrant(grantOf(step.lease(key * 1_000_000, 5, 1, 0), 1), { want: 5, least: 1, sentUs: 0, isLease: true }, 1_000)
    leases.set(`user:${key}`, lease)
  }
  collect()
  return (process.memoryUsage().heapUsed - before) / leases.size
}
