import type { Grant } from '../../../sluicegate/dist/lease/grant.js'
import { CLOCK_DRIFT } from '../../../sluicegate/dist/lease/leasing.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { Admission } from '../history/excess.js'
import { specOf } from '../kit.js'
import type { SinglePolicySpec } from '../oracle/oracle.js'
import { type RecordRules, SOUND_RECORDS } from '../twins/lease-step.js'
import type { LeasedPolicy } from './lease-draws.js'
import { type HeldRules, SOUND_HELD, wholeNumbersOf } from './lease-records.js'
import { SOUND_WORK, type WorkRules } from './lease-work.js'

/** So much may be given at least, however little the burst is larger than what flows in during a lease. */
const LEAST_TOKENS = 2
const WAITED_LEASES = 1.5

/**
 * What several versions of a policy may let pass together, whatever the mix: the largest burst and the highest rate, or the largest limit. Where
 * the rate of one is so high that the bursts are less than flows in until a token of another is spent, and two tokens, that instead of the burst.
 */
export function boundOf(versions: readonly Pick<LeasedPolicy, 'policy' | 'leaseUs'>[]): SinglePolicySpec {
  const policies = versions.map(({ policy }) => policy)
  const [first] = policies
  if (first === undefined) throw new RangeError('no version')
  if (first.algorithm === 'token-bucket' || first.algorithm === 'gcra') {
    const fastest = policies.reduce((most, policy) => (rateOf(policy) > rateOf(most) ? policy : most))
    const longestUs = Math.max(...versions.map(({ leaseUs }) => leaseUs))
    const flowsIn = longestUs === 0 || versions.length === 1 ? 0 : rateOf(fastest) * longestUs
    // Where the fastest is not alone, slower ones lease tokens ahead beside it.
    const waitedLeases = policies.every((policy) => rateOf(policy) === rateOf(fastest)) ? 1 : WAITED_LEASES
    const isTight = Math.max(...policies.map(({ burst }) => burst)) < flowsIn * waitedLeases + LEAST_TOKENS
    const least = isTight ? Math.ceil(flowsIn * WAITED_LEASES) + LEAST_TOKENS : 0
    return { ...specOf(fastest), burst: Math.max(least, ...policies.map(({ burst }) => burst)) } as SinglePolicySpec
  }
  return { ...specOf(first), limit: Math.max(...policies.map(({ limit }) => limit)) } as SinglePolicySpec
}

export function namesOf(versions: readonly LeasedPolicy[]): string {
  return versions.map(({ policy, leaseUs }) => `${policy.name} burst ${policy.burst} leased for ${leaseUs} us`).join(', ')
}

/** Tokens a microsecond. */
function rateOf({ limit, windowMs }: Policy): number {
  return limit / (windowMs * 1000)
}

/** What a history came to. */
export interface LeaseHistory {
  /** The versions of the policy that were in use. */
  readonly versions: readonly LeasedPolicy[]
  readonly admissions: readonly Admission[]
  /** Tokens that the authority handed out, one way or the other. */
  readonly charged: number
}

/** What a history of leases goes by. */
export interface LeaseRules {
  readonly name: string
  /** The numbers of a version at the authority, and how it counts what passes under other numbers. */
  numbersOf(encoding: PolicyEncoding): number[]
  readonly records: RecordRules
  readonly held: HeldRules
  readonly work: WorkRules
  /** A grant as a process takes it in, and the time from which its ends count. */
  grantOf(grant: Grant, leaseUs: number): Grant
  endsFromUs(sentUs: number, arrivedUs: number): number
  /** How many tokens are sent back of those that ended unspent, and of those that were spent; whether those that are sent back before are void. */
  backOf(unspent: number, spent: number): number
  readonly voidsReturned: boolean
  /** The time of a lease as the authority believes it when tokens of it come back. */
  leasedUs(leasedUs: number, nowUs: number): number
}

/** Those of the library. */
export const SOUND: LeaseRules = {
  name: 'sound',
  numbersOf: wholeNumbersOf,
  records: SOUND_RECORDS,
  held: SOUND_HELD,
  work: SOUND_WORK,
  grantOf: (grant) => grant,
  endsFromUs: (sentUs) => sentUs,
  backOf: (unspent) => unspent,
  voidsReturned: true,
  leasedUs: (leasedUs) => leasedUs,
}

const NEVER_US = 2 ** 40

type FaultyRules = LeaseRules & { readonly encodings: readonly PolicyEncoding['name'][] }

function broken(name: string, encodings: FaultyRules['encodings'], rules: Partial<LeaseRules>): FaultyRules {
  return { ...SOUND, ...rules, name, encodings }
}

/** One rule broken each, with the encodings in which that is seen. */
export const FAULTY: readonly FaultyRules[] = [
  broken('tokens have no end', ['rate', 'sliding-log'], { grantOf: (grant) => ({ ...grant, endUs: () => NEVER_US }) }),
  broken('the whole burst is lent', ['rate'], { records: { ...SOUND_RECORDS, leftBy: () => 0 } }),
  broken('a lease leaves what flows back in half of it', ['rate'], { records: { ...SOUND_RECORDS, leftBy: (lent) => lent / 2 } }),
  broken('a take does not see what a lease has left', ['rate'], {
    records: { ...SOUND_RECORDS, takenFrom: (debt, lent) => Math.max(0, debt - lent) },
  }),
  broken('a take forgets leased tokens that are paid and may still be spent', ['rate'], {
    records: { ...SOUND_RECORDS, takenFrom: (debt, lent) => (debt > lent ? debt : 0) },
  }),
  broken('ends count from the arrival', ['rate', 'fixed-window', 'sliding-window', 'sliding-log'], {
    endsFromUs: (_sentUs, arrivedUs) => arrivedUs,
  }),
  // What a batch takes off for the pace of clocks, the other way round.
  broken('clocks are taken to be equally fast', ['rate', 'sliding-log', 'fixed-window', 'sliding-window'], {
    grantOf: (grant) => ({
      ...grant,
      endUs: (token) => (grant.endUs(token) * CLOCK_DRIFT) / (CLOCK_DRIFT - 1) + 1e-6,
    }),
  }),
  broken('tokens of a window outlive it', ['fixed-window', 'sliding-window'], {
    grantOf: (grant) => ({ ...grant, endUs: () => NEVER_US }),
  }),
  broken('a log counts from now instead of from the end of the lease', ['sliding-log'], {
    numbersOf: ({ numbersAt }) => {
      const [limit = 0, windowUs = 0] = numbersAt(0).split(' ').map(Number)
      return [limit, windowUs, 0]
    },
    grantOf: (grant, leaseUs) => ({ ...grant, endUs: () => leaseUs }),
  }),
  broken('spent tokens are returned', ['fixed-window', 'sliding-window', 'sliding-log'], { backOf: (unspent, spent) => unspent + spent }),
  broken('returned tokens are spent as well', ['fixed-window', 'sliding-window', 'sliding-log'], { voidsReturned: false }),
  broken('what comes back from one window makes room in the next', ['fixed-window', 'sliding-window'], {
    leasedUs: (_leasedUs, nowUs) => nowUs,
  }),
  broken('tokens of a longer lease count as if they were spent at once', ['rate'], { records: { ...SOUND_RECORDS, countsLent: false } }),
  broken('takes and leases do not see what is held', ['rate', 'fixed-window', 'sliding-window', 'sliding-log'], {
    held: { ...SOUND_HELD, seen: () => 0 },
  }),
  broken('what work has spent and nobody reported is free when its grant ends', ['rate', 'fixed-window', 'sliding-window', 'sliding-log'], {
    held: { ...SOUND_HELD, lapsed: () => 0 },
  }),
  broken('a grant of work ends so long after its answer has come', ['rate', 'sliding-log'], {
    work: { ...SOUND_WORK, endsUs: (_sentUs, arrivedUs, forUs) => arrivedUs + forUs },
  }),
  broken('what was spent of a grant that ended while it was reported is forgotten', ['fixed-window', 'sliding-log'], {
    work: { ...SOUND_WORK, spentOfNext: (_since, ofStanding) => ofStanding },
  }),
  broken('what a lost report said is spent again', ['rate', 'fixed-window', 'sliding-window', 'sliding-log'], {
    work: { ...SOUND_WORK, leftOfLost: (granted) => granted },
  }),
  broken('a third version begins as the one written last, and not as the largest', ['rate', 'fixed-window', 'sliding-window'], {
    records: { ...SOUND_RECORDS, beginsWithLargest: false },
  }),
]
