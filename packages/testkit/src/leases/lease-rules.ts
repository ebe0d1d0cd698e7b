import type { Grant } from '../../../sluicegate/dist/lease/grant.js'
import { CLOCK_DRIFT } from '../../../sluicegate/dist/lease/leasing.js'
import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { Admission } from '../history/excess.js'
import { type RecordRules, SOUND_RECORDS } from '../twins/lease-step.js'
import type { LeasedPolicy } from './lease-draws.js'
import { wholeNumbersOf } from './lease-records.js'

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
  /** A grant as a process takes it in, and the times from which its ends and its beginnings count. */
  grantOf(grant: Grant, leaseUs: number): Grant
  endsFromUs(sentUs: number, arrivedUs: number): number
  beginsFromUs(sentUs: number, arrivedUs: number): number
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
  grantOf: (grant) => grant,
  endsFromUs: (sentUs) => sentUs,
  beginsFromUs: (_sentUs, arrivedUs) => arrivedUs,
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
  broken('beginnings count from the sending', ['rate'], { beginsFromUs: (sentUs) => sentUs }),
  // What a batch takes off and adds for the pace of clocks, the other way round.
  broken('clocks are taken to be equally fast', ['rate', 'sliding-log', 'fixed-window', 'sliding-window'], {
    grantOf: (grant) => ({
      ...grant,
      beginUs: (token) => Math.max(0, (grant.beginUs(token) * CLOCK_DRIFT) / (CLOCK_DRIFT + 1) - 1e-6),
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
  broken('a record without room drops what others lend ahead', ['rate', 'sliding-window'], {
    records: { ...SOUND_RECORDS, fillsBeyond: false },
  }),
  broken('tokens of a longer lease count as if they were spent at once', ['rate'], { records: { ...SOUND_RECORDS, countsLent: false } }),
  broken('a third version begins as the one written last, and not as the largest', ['rate', 'fixed-window', 'sliding-window'], {
    records: { ...SOUND_RECORDS, beginsWithLargest: false },
  }),
]
