import type { Grant, TokenRequest } from '../../../sluicegate/dist/lease/grant.js'
import { CLOCK_DRIFT } from '../../../sluicegate/dist/lease/leasing.js'
import type { HoldOperation } from '../../../sluicegate/dist/shared/backend.js'
import type { PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import { grantsOf } from '../../../sluicegate/dist/shared/steps/step-answers.js'
import { type Admission, type Excess, firstOver } from '../history/excess.js'
import { Random } from '../random.js'
import { Timeline } from '../virtual-time.js'
import { type LeasedPolicy, randomVersions } from './lease-draws.js'
import { LeaseProcess } from './lease-process.js'
import { LeaseRecords } from './lease-records.js'
import type { LeaseHistory, LeaseRules } from './lease-rules.js'
import { boundOf, namesOf } from './lease-rules.js'
import { LeaseWork } from './lease-work.js'

interface LeasePace {
  /** How long a message takes. */
  delayUs(): number
  /** From one thing that a process does by itself to the next. */
  gapUs(): number
  /** A moment at which tokens of a grant may end, by one rule or another, or just before or after it. */
  lastUs(sentUs: number, arrivedUs: number, grant: Grant): number
}

/** When things happen in a simulated fleet, at random: often at the very moment that hurts. */
function leasePace(random: Random, { leaseUs, policy: { windowMs } }: LeasedPolicy): LeasePace {
  const noDelay = random.chance(0.6) ? 0.8 : 0.2
  return {
    delayUs: () => (random.chance(noDelay) ? 0 : random.magnitude(1, random.pick([leaseUs, leaseUs, 3_000_000]))),
    gapUs: () => random.magnitude(1, random.pick([leaseUs, 4 * leaseUs, windowMs * 2000])),
    lastUs(sentUs, arrivedUs, grant) {
      const token = random.pick([0, grant.tokens - 1])
      const endUs = Math.min(grant.endUs(token), 4 * leaseUs + windowMs * 1000)
      const fromUs = random.pick([sentUs, arrivedUs])
      const forDriftUs = random.pick([0, Math.ceil(endUs / CLOCK_DRIFT)])
      return fromUs + Math.floor(endUs) - forDriftUs - random.pick([-1, 0, 1, 1, 2])
    },
  }
}

const [MOST_EVENTS, MOST_AT_ONCE] = [120, 64]
/** Every so many histories, if of one version, have open work beside the leases. */
const WORK_EACH = 4
const MOST_EXPECTED = 8

/**
 * A fleet on one key, in whole microseconds: one authority, and processes that lease from it, ask it at once, and have work open there, under one or several
 * versions of a policy, over a network that delays and loses, until all is over. Who spends does so when it hurts most: at the last moment of what it
 * holds, together with the others, and then as each token conforms.
 */
export function leaseHistory(seed: number, rules: LeaseRules, encodings: readonly PolicyEncoding['name'][]): LeaseHistory {
  return new Fleet(new Random(seed), rules, encodings, seed % WORK_EACH === 0).history()
}

class Fleet {
  private readonly random: Random
  private readonly rules: LeaseRules
  private readonly versions: readonly [LeasedPolicy, ...LeasedPolicy[]]
  private readonly records: LeaseRecords
  private readonly processes: LeaseProcess[]
  private readonly time: Timeline
  private readonly admissions: Admission[] = []
  private readonly pace: LeasePace
  private readonly mostCost: number
  /** The part of the takes that the authority decides one by one. */
  private readonly atOnce: number
  private charged = 0
  private readonly hasWork: boolean

  constructor(random: Random, rules: LeaseRules, encodings: readonly PolicyEncoding['name'][], mayHaveWork: boolean) {
    this.random = random
    this.rules = rules
    this.versions = randomVersions(random, encodings)
    this.hasWork = mayHaveWork && this.versions.length === 1
    this.records = new LeaseRecords(this.versions[0].encoding.name, rules.records, rules.numbersOf, rules.held)
    this.time = new Timeline(random.integer(1, 20_000_000))
    const count = random.integer(1, random.pick(this.versions.length > 1 ? [4, 8] : [2, 4, 8]))
    this.processes = Array.from({ length: count }, () => new LeaseProcess(random, random.pick(this.versions)))
    this.pace = leasePace(random, this.versions[0])
    this.mostCost = random.pick([1, 1, 3, 6])
    this.atOnce = random.pick([0.02, 0.2, 0.6])
  }

  private get nowUs(): number {
    return this.time.now
  }

  history(): LeaseHistory {
    for (const process of this.processes) this.inUs(this.pace.gapUs(), () => this.turn(process))
    this.time.run(MOST_EVENTS)
    return { versions: this.versions, admissions: this.admissions, charged: this.charged }
  }

  /** Something that a process does by itself. */
  private turn(process: LeaseProcess): void {
    const { random } = this
    this.inUs(this.pace.gapUs(), () => this.turn(process))
    if (this.nowUs < process.stoppedUntilUs) return
    if (random.chance(0.05)) {
      process.stoppedUntilUs = this.nowUs + random.magnitude(1, 5 * this.versions[0].leaseUs)
      this.inUs(process.stoppedUntilUs - this.nowUs, () => this.spendAll(process))
    } else if (random.chance(0.02)) process.crash(this.nowUs)
    else if (this.versions.length > 1 && random.chance(0.03)) this.deploy(process)
    else if (this.hasWork && random.chance(0.6)) this.work(process)
    else if (random.chance(0.1)) this.giveBack(process, random.chance(0.5))
    else for (let takes = random.integer(1, random.pick([1, 4, 12])); takes > 0; takes--) this.take(process)
  }

  /** Another version takes the place of a process, in a new one or by an update: nothing that is held or on its way is spent. */
  private deploy(process: LeaseProcess): void {
    this.giveBack(process, true)
    process.version = this.random.pick(this.versions)
    process.crash(this.nowUs)
  }

  /** Work opens, goes on, closes, or is left alone. */
  private work(process: LeaseProcess): void {
    const { random } = this
    const { works } = process
    const own = works.length === 0 ? undefined : random.pick(works)
    if (own === undefined || random.chance(0.2)) this.open(process)
    else if (random.chance(0.1)) works.splice(works.indexOf(own), 1)
    else if (!own.isAsking && random.chance(0.15)) {
      works.splice(works.indexOf(own), 1)
      this.say(process, own, own.asks(process.clockUs(this.nowUs), { hold: 0, want: 0, least: 0, isDebt: true }))
    } else this.add(process, own, random.integer(1, this.mostCost))
  }

  private open(process: LeaseProcess): void {
    const { random } = this
    const { leaseUs, policy } = this.versions[0]
    const work = new LeaseWork(this.rules.work, random.magnitude(1_000, random.pick([4 * leaseUs, policy.windowMs * 2_000])))
    const hold = random.integer(1, MOST_EXPECTED)
    process.works.push(work)
    const step = { hold, want: random.integer(1, hold), least: 1, isDebt: false }
    this.say(process, work, work.asks(process.clockUs(this.nowUs), step))
  }

  /** As `SharedWork` does it: of the grant, or of one that the authority gives, and now and then it is renewed ahead of need. */
  private add(process: LeaseProcess, work: LeaseWork, cost: number): void {
    const { random } = this
    const isAdded = this.added(process, work, cost)
    if (work.isAsking || (isAdded && random.chance(0.7))) return
    const least = isAdded ? 0 : cost
    const step = { hold: 'rest', want: least + random.integer(0, 4), least, isDebt: false } as const
    this.say(process, work, work.asks(process.clockUs(this.nowUs), step), () => isAdded || this.added(process, work, cost))
  }

  private added(process: LeaseProcess, work: LeaseWork, cost: number): boolean {
    if (!work.spend(process.clockUs(this.nowUs), cost)) return false
    this.admissions.push({ atUs: this.nowUs, cost })
    return true
  }

  /** Tells the authority of work, which may come late, or not at all, as may its answer. */
  private say(process: LeaseProcess, work: LeaseWork, operation: HoldOperation, then: () => void = () => undefined): void {
    const { random } = this
    const { life, version } = process
    const sentUs = process.clockUs(this.nowUs)
    work.isAsking = true
    const lost = (): void =>
      this.arrives(process, version.leaseUs, life, () => {
        work.isAsking = false
        work.lost(operation)
      })
    this.inUs(this.pace.delayUs(), () => {
      if (random.chance(0.05)) return lost()
      const stepped = this.records.hold(version.encoding, this.nowUs, operation)
      this.charged += stepped.charged
      if (random.chance(0.05)) return lost()
      this.arrives(process, this.pace.delayUs(), life, () => {
        work.isAsking = false
        work.answered(stepped, operation, sentUs, process.clockUs(this.nowUs))
        then()
        if (!stepped.done) return
        const lastUs = process.whenUs(work.untilUs - random.pick([-1, 0, 1, 1, 2]))
        this.inUs(Math.max(0, lastUs - this.nowUs), () => (random.chance(0.5) ? this.surge() : this.spendAll(process)))
      })
    })
  }

  /** As `LeasedTakes` does it. */
  private take(process: LeaseProcess): void {
    const { random } = this
    const cost = random.integer(1, this.mostCost)
    const isExact = process.version.leaseUs === 0
    const atUs = process.clockUs(this.nowUs)
    process.lease.demand.request(cost)
    if (!process.hoards && this.spent(process, cost)) return
    if (!isExact && process.lease.deniedUntil(atUs, cost) !== undefined) return
    if (isExact || random.chance(this.atOnce)) this.takeAtOnce(process, cost, this.pace.delayUs())
    else {
      process.lease.demand.join(cost, atUs)
      process.waiting.push(cost)
      if (!process.isAsking) this.ask(process)
    }
  }

  private spent(process: LeaseProcess, cost: number): boolean {
    if (!process.lease.spend(process.clockUs(this.nowUs), cost)) return false
    this.admissions.push({ atUs: this.nowUs, cost })
    process.spent += cost
    return true
  }

  /** What ended unspent, or all that is there, as `LeaseReturns` does it: the message may take its time, or be lost. */
  private giveBack(process: LeaseProcess, isAll: boolean): void {
    if (this.nowUs < process.stoppedUntilUs || this.versions[0].encoding.name === 'rate' || process.version.leaseUs === 0) return
    const { random, rules } = this
    const atUs = process.clockUs(this.nowUs)
    const before = isAll ? process.lease.readyAt(atUs) : 0
    if (isAll) process.lease.end()
    const unspent = process.lease.unspentAt(atUs)
    if (!rules.voidsReturned && before > 0) this.admissions.push({ atUs: this.nowUs, cost: before })
    for (const { grantId, cost } of unspent) this.send(process, grantId, rules.backOf(cost, 0))
    const tooMany = rules.backOf(0, process.spent)
    if (process.lastId !== undefined && tooMany > 0) this.send(process, process.lastId, tooMany)
    process.spent = 0
    if (random.chance(0.5)) this.inUs(0, () => this.surge())
  }

  private send(process: LeaseProcess, leasedUs: number, tokens: number): void {
    if (this.random.chance(0.05)) return
    const { encoding } = process.version
    this.inUs(this.pace.delayUs(), () => {
      this.records.giveBack(encoding, this.nowUs, tokens, this.rules.leasedUs(leasedUs, this.nowUs))
      this.arrives(process, this.pace.delayUs(), process.life, () => process.lease.reopen(process.clockUs(this.nowUs)))
    })
  }

  private spendAll(process: LeaseProcess): void {
    if (this.nowUs < process.stoppedUntilUs) return
    while (this.spent(process, 1));
    for (const work of process.works) while (this.added(process, work, 1));
  }

  private ask(process: LeaseProcess): void {
    const { random, rules } = this
    const { life, version } = process
    const sentUs = process.clockUs(this.nowUs)
    const own = process.lease.want(sentUs)
    const asked: TokenRequest = random.chance(0.2) ? own : { ...own, want: own.least + random.integer(0, 12) }
    process.isAsking = true
    this.inUs(this.pace.delayUs(), () => {
      if (random.chance(0.05)) return this.lost(process, life)
      const lease = this.records.lease(version.encoding, this.nowUs, asked.want, asked.least)
      this.charged += lease.tokens
      if (random.chance(0.05)) return this.lost(process, life)
      const grant = rules.grantOf(grantsOf(version.encoding, version.leaseUs)(lease, asked.least), version.leaseUs)
      this.arrives(process, this.pace.delayUs(), life, () => this.arrived(process, asked, grant))
    })
  }

  private arrived(process: LeaseProcess, asked: TokenRequest, grant: Grant): void {
    const { rules } = this
    const arrivedUs = process.clockUs(this.nowUs)
    process.isAsking = false
    process.lease.addGrant(grant, { ...asked, sentUs: rules.endsFromUs(asked.sentUs, arrivedUs) }, arrivedUs)
    if (grant.tokens > 0) {
      process.lastId = grant.id
      process.spent = 0
    }
    const { waiting } = process
    process.waiting = []
    for (const cost of waiting) {
      process.lease.demand.leave(cost)
      if (!process.hoards) this.spent(process, cost)
    }
    if (grant.tokens > 0) this.lieInWait(process, asked.sentUs, arrivedUs, grant)
  }

  /** The moments at which the tokens of a grant may end, by one rule or another, and at which more are free. */
  private lieInWait(process: LeaseProcess, sentUs: number, arrivedUs: number, grant: Grant): void {
    const { random } = this
    const lastUs = this.pace.lastUs(sentUs, arrivedUs, grant)
    const freeUs = process.lease.deniedUntil(arrivedUs, 1)
    const clockUs = freeUs !== undefined && random.chance(0.4) ? freeUs : lastUs
    const atUs = Math.max(this.nowUs, process.whenUs(clockUs))
    this.inUs(atUs - this.nowUs, () => {
      if (random.chance(0.2)) this.giveBack(process, random.chance(0.5))
      else if (random.chance(0.8)) this.surge()
      else this.spendAll(process)
    })
  }

  /** All spend what they have, then take what the authority has, now and as it conforms. */
  private surge(): void {
    for (const process of this.processes) this.spendAll(process)
    this.follow(this.random.integer(0, 4))
  }

  private follow(more: number): void {
    const process = this.random.pick(this.processes)
    for (let takes = 0; takes < MOST_AT_ONCE && this.takeAtOnce(process, 1, 0); takes++);
    const untilUs = this.records.untilFreeUs(process.version.encoding, this.nowUs, 1)
    if (more > 0) this.inUs(Math.max(1, untilUs), () => this.follow(more - 1))
  }

  /** Whether it passed at the authority, by whose time it counts, as far as that is known at once. */
  private takeAtOnce(process: LeaseProcess, cost: number, thereUs: number): boolean {
    if (this.nowUs < process.stoppedUntilUs) return false
    const { encoding } = process.version
    let isAllowed = false
    const asked = (): void => {
      isAllowed = this.records.take(encoding, this.nowUs, cost).allowed
      if (!isAllowed) return
      this.charged += cost
      this.admissions.push({ atUs: this.nowUs, cost })
    }
    if (thereUs === 0) asked()
    else this.inUs(thereUs, asked)
    return isAllowed
  }

  /** A reply, when the process is there to see it. */
  private arrives(process: LeaseProcess, delayUs: number, life: number, see: () => void): void {
    const seen = (): void => {
      if (process.life !== life) return
      if (this.nowUs < process.stoppedUntilUs) this.inUs(process.stoppedUntilUs - this.nowUs, seen)
      else see()
    }
    if (delayUs === 0) seen()
    else this.inUs(delayUs, seen)
  }

  /** A lost answer: the process notices only that the time has passed. */
  private lost(process: LeaseProcess, life: number): void {
    this.inUs(this.versions[0].leaseUs, () => {
      if (process.life !== life) return
      process.isAsking = false
      process.lease.failed(process.clockUs(this.nowUs))
      for (const cost of process.waiting.splice(0)) process.lease.demand.leave(cost)
    })
  }

  private inUs(us: number, run: () => void): void {
    this.time.after(us, run)
  }
}

export const LEASED_ENCODINGS = [
  'rate',
  'fixed-window',
  'sliding-window',
  'sliding-log',
] as const satisfies readonly PolicyEncoding['name'][]

/** What many histories came to. */
export interface LeaseRun {
  readonly histories: number
  /** Of all of them, of those in which anything was spent. */
  readonly admitted: number
  readonly charged: number
  /** The first that went over the budget. */
  readonly excess: (Excess & { readonly seed: number; readonly policy: string }) | undefined
}

/** Runs the histories of seeds until one goes over the budget. */
export function firstLeaseExcess(seeds: Iterable<number>, rules: LeaseRules, encodings: readonly PolicyEncoding['name'][]): LeaseRun {
  let histories = 0
  let admitted = 0
  let charged = 0
  for (const seed of seeds) {
    const history = leaseHistory(seed, rules, encodings)
    histories++
    charged += history.charged
    for (const { cost } of history.admissions) admitted += cost
    const excess = firstOver(boundOf(history.versions), history.admissions)
    if (excess !== undefined) return { histories, admitted, charged, excess: { ...excess, seed, policy: namesOf(history.versions) } }
  }
  return { histories, admitted, charged, excess: undefined }
}
