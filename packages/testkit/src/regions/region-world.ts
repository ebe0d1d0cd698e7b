import type { Decision } from '../../../sluicegate/dist/index.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'
import { RegionBackends } from '../../../sluicegate/dist/regions/region-backends.js'
import type { RegionOptions } from '../../../sluicegate/dist/regions/region-options.js'
import { shareOfRegion } from '../../../sluicegate/dist/regions/region-share.js'
import { BackedLimiter } from '../../../sluicegate/dist/shared/backed-limiter.js'
import type { RegionStore } from '../../../sluicegate/dist/shared/open-store.js'
import { GivenShare } from '../../../sluicegate/dist/shared/outage/local-share.js'
import type { RegionPool } from '../../../sluicegate/dist/shared/region-pool.js'
import { encodingsOf, type PolicyEncoding } from '../../../sluicegate/dist/shared/steps/policy-encoding.js'
import type { CasOutcome, CasOutcomes, CasState, CasStore, CasSwap } from '../../../sluicegate/dist/store/cas-store.js'
import { StoreLanes } from '../../../sluicegate/dist/store/store-lanes.js'
import { SwapBackend } from '../../../sluicegate/dist/store/swap-backend.js'
import { TimedStore } from '../../../sluicegate/dist/store/timed-store.js'
import { memoryStore } from '../../../sluicegate/dist/store-testing/index.js'
import type { Clock } from '../../../sluicegate/dist/time/clock-interface.js'
import type { Admission } from '../history/excess.js'
import { LeaseRecords } from '../leases/lease-records.js'
import { Random } from '../random.js'
import { type SkewedClock, VirtualTime } from '../virtual-time.js'
import { type PoolRules, PoolTwin, SOUND_POOL } from './pool-twin.js'
import { type Link, SimHome, StoreSimHome } from './sim-home.js'

/** A store in memory that can lose its data. Versions of before are never used again. */
class ForgetfulStore implements CasStore {
  readonly name = 'forgetful'
  private readonly clock: Clock
  private kept: ReturnType<typeof memoryStore>
  private life = 0

  constructor(clock: Clock) {
    this.clock = clock
    this.kept = memoryStore({ clock })
  }

  forget(): void {
    this.kept = memoryStore({ clock: this.clock })
    this.life++
  }

  async read(key: string): Promise<CasState> {
    return this.marked(await this.kept.read(key))
  }

  async swap(swap: CasSwap): Promise<CasOutcome> {
    const { swapped, state } = await this.kept.swap(this.unmarked(swap))
    return { swapped, state: this.marked(state) }
  }

  async swapAll(swaps: readonly CasSwap[]): Promise<CasOutcomes> {
    const { swapped, states } = await this.kept.swapAll(swaps.map((swap) => this.unmarked(swap)))
    return { swapped, states: states.map((state) => this.marked(state)) }
  }

  private marked(state: CasState): CasState {
    return state.version === undefined ? state : { ...state, version: `${this.life} ${state.version}` }
  }

  private unmarked(swap: CasSwap): CasSwap {
    if (swap.version === undefined) return swap
    const [life, version] = String(swap.version).split(' ').map(Number)
    return { ...swap, version: life === this.life ? version : -1 }
  }
}

/** How messages of a region travel to the home. Durations are microseconds, one way. */
export interface OceanLink {
  readonly delayUs: number
  readonly jitterUs?: number
  /** The part of messages that is lost, on either way, or that arrives twice. */
  readonly lost?: number
  readonly doubled?: number
}

/** One region of a simulated world. */
export interface RegionSetup extends Partial<Omit<RegionOptions, 'name' | 'local' | 'home' | 'timeout'>> {
  readonly link: OceanLink
  /** Processes, default 2. */
  readonly processes?: number
  readonly timeoutMs?: number
  /** How far ahead its processes lease, default 50 ms; 0 for not at all. */
  readonly horizonMs?: number
}

export interface WorldSetup {
  readonly policy: Policy
  readonly regions: readonly RegionSetup[]
  readonly random: Random
  readonly pool?: PoolRules
  readonly homeLeaseUs?: (leaseUs: number) => number
  /** How far clocks are apart, and the parts in a million by which they differ in pace. */
  readonly offsetUs?: number
  readonly skew?: number
  /** How long a message within a region takes at most, one way; default 300 us. */
  readonly nearUs?: number
  /** `store`: a home with all verbs, instead of the twins of the scripts for takes and leases. */
  readonly homeIn?: 'twins' | 'store'
}

const NEAR_US = 300

/** Of a process. */
interface Life {
  isOver: boolean
}

/** What one region did. */
export interface RegionRecord {
  readonly taken: Admission[]
  /** What the home decided, when its answer came. */
  readonly atHome: Admission[]
  /** Without the home, by the region's share. */
  readonly alone: Admission[]
  denied: number
  errors: number
  readonly waitsUs: number[]
}

/** The library's limiters in virtual time: processes in regions, what their stores hold by the twin of the script, and a home over slow links. */
export class RegionWorld {
  readonly time = new VirtualTime()
  readonly home: SimHome | StoreSimHome
  readonly regions: SimRegion[]
  private readonly random: Random

  constructor(setup: WorldSetup) {
    this.random = setup.random
    this.home = setup.homeIn === 'store' ? new StoreSimHome(this.time) : new SimHome(this.time, setup.homeLeaseUs)
    this.regions = setup.regions.map((each, i) => new SimRegion(this, setup, each, `r${i}`))
  }

  /** Until then, or until nothing is to come. What limiters leave to chance goes by the seed, too. */
  async run(untilUs: number): Promise<void> {
    const { random } = Math
    Math.random = () => this.random.fraction()
    try {
      await this.time.runUntil(untilUs)
    } finally {
      Math.random = random
    }
  }

  /** Takes that passed, in their order; those of a region's share apart. What the home decided counts from its decision, answered or not. */
  get admissions(): Admission[] {
    return [...this.home.admissions, ...this.regions.flatMap(({ record }) => record.taken)].toSorted((a, b) => a.atUs - b.atUs)
  }
}

export class SimRegion {
  readonly record: RegionRecord = { taken: [], atHome: [], alone: [], denied: 0, errors: 0, waitsUs: [] }
  readonly limiters: BackedLimiter[]
  /** Of each of them: nothing of a process that was killed arrives. */
  private readonly lives: Life[]
  readonly clock: SkewedClock
  /** Messages to the home, each with its answer. */
  messages = 0
  /** Calls to its store about tokens that it holds. */
  storeCalls = 0
  /** Nothing gets through. */
  isCutOff = false
  /** Its store does not answer. */
  isStoreOut = false
  private readonly world: RegionWorld
  private readonly random: Random
  private readonly pools = new Map<string, PoolTwin>()
  private readonly rules: PoolRules
  private readonly nearUs: number
  private readonly make: (life: Life) => BackedLimiter
  private readonly store: ForgetfulStore

  constructor(world: RegionWorld, setup: WorldSetup, own: RegionSetup, name: string) {
    const { policy, random, offsetUs = 0, skew = 0 } = setup
    this.world = world
    this.random = random
    this.rules = setup.pool ?? SOUND_POOL
    this.nearUs = setup.nearUs ?? NEAR_US
    const anyClock = (): SkewedClock => world.time.clock(random.integer(0, offsetUs), random.pick([-skew, 0, skew]))
    this.clock = world.time.clock(3_600_000_000 + random.integer(-offsetUs, offsetUs), random.pick([-skew, 0, skew]))
    this.store = new ForgetfulStore(this.clock)
    const { store } = this
    const { horizonMs = 50, timeoutMs = 1000 } = own
    this.make = (life) => {
      const clock = anyClock()
      const link = this.linkOf(own.link, life)
      const regionStore: RegionStore = {
        pools: (_each, account) => this.poolOf(account, life),
        connect: (each, lengthOf, names) =>
          new SwapBackend(new StoreLanes(new TimedStore(store, clock, 200)), each, lengthOf, name, undefined, names),
      }
      const home = world.home.behind(link, () => setup.regions.length)
      const region = new RegionBackends({ home, store: regionStore, options: { ...own, name, timeoutMs }, horizonMs, clock }, policy)
      return new BackedLimiter({
        policy,
        connect: (each) => region.connect(each),
        places: { serverOf: () => undefined, slotOf: () => undefined },
        options: {},
        timeoutMs: 200 + timeoutMs,
        countedShare: () => shareOfRegion(new GivenShare(1 / (own.processes ?? 2)), region.share),
        horizonMs,
        lateAdvice: '',
        clock,
        region,
      })
    }
    this.lives = Array.from({ length: own.processes ?? 2 }, () => ({ isOver: false }))
    this.limiters = this.lives.map((life) => this.make(life))
  }

  /** One take at one of the processes, recorded when it is answered. */
  take(key: string, cost: number, process = this.random.integer(0, this.limiters.length - 1)): void {
    const { time } = this.world
    const sinceUs = time.nowUs
    const answered = (decision: Decision): void => {
      this.record.waitsUs.push(time.nowUs - sinceUs)
      if (!decision.allowed) this.record.denied += cost
      else if (decision.source === 'outage') this.record.alone.push({ atUs: time.nowUs, cost })
      else if (decision.source === 'memory') this.record.atHome.push({ atUs: time.nowUs, cost })
      else this.record.taken.push({ atUs: time.nowUs, cost })
    }
    const decision = (this.limiters[process] as BackedLimiter).take(key, cost)
    if (!(decision instanceof Promise)) answered(decision)
    else
      decision.then(answered, () => {
        this.record.errors++
      })
  }

  /** A reservation at one of the processes that is cancelled after a while: nothing of it is spent. */
  async hold(key: string, cost: number, us: number, process = this.random.integer(0, this.limiters.length - 1)): Promise<void> {
    try {
      const reservation = await (this.limiters[process] as BackedLimiter).reserve(key, cost)
      await this.world.time.sleep(us)
      await reservation.cancel()
    } catch {
      this.record.errors++
    }
  }

  /** One process is killed, and with it what it was to do; another takes its place. */
  replace(process: number): void {
    ;(this.lives[process] as Life).isOver = true
    this.end(process)
  }

  /** One process ends as it should; another takes its place. */
  end(process: number): void {
    this.limiters[process]?.close()
    const life = { isOver: false }
    this.lives[process] = life
    this.limiters[process] = this.make(life)
  }

  /** The clock of its store is set. */
  step(us: number): void {
    this.clock.step(us)
  }

  /** Its store has lost its data. */
  forget(): void {
    this.pools.clear()
    this.store.forget()
  }

  /** Tokens that it holds of a key. */
  heldOf(policy: string, key: string): number {
    return this.pools.get(`${policy} ${key}`)?.left ?? 0
  }

  private poolOf(policy: string, life: Life): RegionPool {
    const at = <T>(key: string, run: (twin: PoolTwin) => T, isLook = false): Promise<T> =>
      this.near(life, () => {
        this.storeCalls++
        const name = `${policy} ${key}`
        const known = this.pools.get(name) ?? new PoolTwin(this.rules)
        this.pools.set(name, known)
        const twin = isLook ? known.copy() : known
        twin.load(this.clock.nowUs())
        return run(twin)
      })
    return {
      draw: (key, draw) => at(key, (twin) => twin.draw(draw), draw.demand === undefined),
      claim: (key, claim) => at(key, (twin) => twin.claim(claim)),
      refill: (key, answer) => at(key, (twin) => twin.refill(answer)),
      giveBack: (key, batch) => at(key, (twin) => twin.giveBack(batch)),
      reclaim: (key, endUs) => at(key, (twin) => twin.reclaim(endUs)),
      addDebt: (key, tokens) => at(key, (twin) => twin.addDebt(tokens)),
      takeDebt: (key) => at(key, (twin) => twin.takeDebt()),
      block: (key, us) => at(key, (twin) => twin.block(us)),
    }
  }

  private async near<T>(life: Life, run: () => T): Promise<T> {
    const { time } = this.world
    if (life.isOver || this.isStoreOut) return new Promise(() => undefined)
    await time.sleep(this.random.integer(0, this.nearUs))
    const answer = run()
    await time.sleep(this.random.integer(0, this.nearUs))
    return answer
  }

  private linkOf({ delayUs, jitterUs = 0, lost = 0, doubled = 0 }: OceanLink, life: Life): Link {
    const { time } = this.world
    const { random } = this
    const oneWay = (): Promise<void> => time.sleep(delayUs + random.integer(0, jitterUs))
    const never = (): Promise<never> => new Promise(() => undefined)
    return async (run, mayRepeat) => {
      if (life.isOver) return never()
      this.messages++
      await oneWay()
      if (this.isCutOff || random.chance(lost)) return never()
      const answer = run()
      if (mayRepeat && random.chance(doubled)) time.inUs(random.integer(0, jitterUs), () => void run())
      await oneWay()
      return this.isCutOff || random.chance(lost) ? never() : answer
    }
  }
}

/** Demand of one region at a time, in takes a second. */
export type DemandOf = (second: number) => number

interface UseSetup {
  readonly policy: Policy
  /** One way to the home, in milliseconds, for each region. */
  readonly delaysMs: readonly number[]
  readonly demand: readonly DemandOf[]
  readonly seconds: number
  /** Seconds at the beginning that are not counted. */
  readonly warmUpS: number
  readonly seed: number
  readonly pool?: PoolRules
  /** What else happens, planned before the world runs. */
  readonly plan?: (world: RegionWorld) => void
}

/** What came of a demand. */
interface RegionUse {
  /** Tokens that passed, in all and by region and second, and what one store would have admitted of the same takes. */
  readonly admitted: number
  readonly exact: number
  readonly bySecond: readonly (readonly number[])[]
  readonly askedBySecond: readonly (readonly number[])[]
  /** Calls to the home, a second and region. */
  readonly messages: number
  /** The same of all regions by second, those of the beginning too. */
  readonly callsBySecond: readonly number[]
  /** Microseconds that takes waited: median and 99th percentile. */
  readonly p50Us: number
  readonly p99Us: number
  readonly over: number
}

const SECOND_US = 1_000_000

/** A demand at random times, with a mean that may change, in virtual time. */
export async function regionUse({
  policy,
  delaysMs,
  demand,
  seconds,
  warmUpS,
  seed,
  pool = SOUND_POOL,
  plan,
}: UseSetup): Promise<RegionUse> {
  const random = new Random(seed)
  const regions = delaysMs.map((delayMs) => ({ link: { delayUs: delayMs * 1000, jitterUs: delayMs * 100 } }))
  const world = new RegionWorld({ policy, regions, random, pool, offsetUs: 3_600 * SECOND_US, skew: 500 })
  plan?.(world)
  const encoding = encodingsOf(policy).encodings[0] as PolicyEncoding
  const store = new LeaseRecords(encoding.name)
  const grid = (): number[][] => delaysMs.map(() => Array.from({ length: seconds }, () => 0))
  const asked = grid()
  const before = { messages: 0, waits: delaysMs.map(() => 0) }
  let exact = 0
  for (const [i, region] of world.regions.entries()) {
    const perSecond = demand[i] as DemandOf
    for (let atUs = 0; ; ) {
      const pace = perSecond(Math.floor(atUs / SECOND_US))
      atUs += pace > 0 ? Math.ceil(random.exponential(SECOND_US / pace)) : SECOND_US
      if (atUs >= seconds * SECOND_US) break
      if (pace === 0) continue
      const second = Math.floor(atUs / SECOND_US)
      world.time.inUs(atUs, () => {
        ;(asked[i] as number[])[second] = ((asked[i] as number[])[second] as number) + 1
        if (store.take(encoding, world.time.nowUs, 1).allowed && second >= warmUpS) exact++
        region.take('k', 1)
      })
    }
  }
  const callsUntil: number[] = []
  for (let second = 0; second <= seconds; second++) world.time.inUs(second * SECOND_US, () => callsUntil.push(messagesOf(world)))
  world.time.inUs(warmUpS * SECOND_US, () => {
    before.messages = messagesOf(world)
    before.waits = world.regions.map(({ record }) => record.waitsUs.length)
  })
  await world.run((seconds + 2) * SECOND_US)
  const bySecond = grid()
  for (const [i, { record }] of world.regions.entries()) {
    for (const { atUs, cost } of [...record.taken, ...record.atHome]) {
      const second = Math.floor(atUs / SECOND_US)
      if (second < seconds) (bySecond[i] as number[])[second] = ((bySecond[i] as number[])[second] as number) + cost
    }
  }
  const waits = world.regions.flatMap(({ record }, i) => record.waitsUs.slice(before.waits[i])).toSorted((a, b) => a - b)
  const admitted = bySecond.reduce((sum, row) => sum + row.slice(warmUpS).reduce((all, each) => all + each, 0), 0)
  return {
    admitted,
    exact,
    bySecond,
    askedBySecond: asked,
    messages: (messagesOf(world) - before.messages) / (seconds - warmUpS) / delaysMs.length,
    callsBySecond: callsUntil.slice(1).map((calls, second) => calls - (callsUntil[second] ?? 0)),
    p50Us: waits[Math.floor(waits.length / 2)] ?? 0,
    p99Us: waits[Math.floor(waits.length * 0.99)] ?? 0,
    over: admitted - exact,
  }
}

function messagesOf(world: RegionWorld): number {
  return world.regions.reduce((sum, { messages }) => sum + messages, 0)
}
