import { KeyLease } from '../../../sluicegate/dist/lease/key-lease.js'
import { mostLeased } from '../../../sluicegate/dist/lease/leasing.js'
import type { Random } from '../random.js'
import type { LeasedPolicy } from './lease-draws.js'
import type { LeaseWork } from './lease-work.js'

/** The fastest and the slowest clock, against that of the authority: one part in two thousand. */
const MOST_DRIFT = 1000
const DRIFT_PARTS = 2_000_000
const MOST_OFFSET_US = 600_000_000

/** A process of a simulated fleet: what it holds of the one key, by its own clock. */
export class LeaseProcess {
  lease: KeyLease
  isAsking = false
  /** Of whatever was asked before it crashed nothing arrives. */
  life = 0
  /** Until then nothing happens in it. */
  stoppedUntilUs = 0
  /** The last lease, and what was spent since it came. */
  lastId: number | undefined
  spent = 0
  /** Costs of callers that wait for a lease. */
  waiting: number[] = []
  /** Open work. */
  works: LeaseWork[] = []
  /** Keeps tokens for later, instead of spending them as they come. */
  readonly hoards: boolean
  private readonly random: Random
  private readonly offsetUs: number
  private readonly drift: number
  /** The version of the policy that it goes by. */
  version: LeasedPolicy

  constructor(random: Random, version: LeasedPolicy) {
    this.version = version
    this.offsetUs = random.integer(0, MOST_OFFSET_US)
    this.drift = random.chance(0.5) ? random.pick([-MOST_DRIFT, 0, MOST_DRIFT]) : random.integer(-MOST_DRIFT, MOST_DRIFT)
    this.hoards = random.chance(0.5)
    this.random = random
    this.lease = this.newLease(0)
  }

  /** What its clock says at a time of the authority. */
  clockUs(nowUs: number): number {
    return this.offsetUs + nowUs + Math.floor((nowUs * this.drift) / DRIFT_PARTS)
  }

  /** The first time of the authority at which its clock says as much. */
  whenUs(clockUs: number): number {
    let nowUs = Math.floor((clockUs - this.offsetUs) / (1 + this.drift / DRIFT_PARTS)) - 2
    while (this.clockUs(nowUs) < clockUs) nowUs++
    return nowUs
  }

  crash(nowUs: number): void {
    this.life++
    this.isAsking = false
    this.waiting = []
    this.works = []
    this.lease = this.newLease(nowUs)
  }

  private newLease(nowUs: number): KeyLease {
    const { policy, horizonMs, leaseUs } = this.version
    return new KeyLease(this.clockUs(nowUs), horizonMs * 1000, mostLeased(policy, leaseUs), () => this.random.fraction())
  }
}
