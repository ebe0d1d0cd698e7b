import { Random } from 'sluicegate-testkit'
import { Timeline } from 'sluicegate-testkit/leases/timeline.js'
import type { TokenRequest } from '../../../packages/sluicegate/dist/lease/grant.js'
import { KeyLease } from '../../../packages/sluicegate/dist/lease/key-lease.js'
import { surelyUs } from '../../../packages/sluicegate/dist/lease/leasing.js'
import { type GrantOf, grantsOf } from '../../../packages/sluicegate/dist/redis/script-call.js'
import { arrivalUs, type GroupFigures, GroupMeter, keyOf, type NodeGroup } from './node-group.js'
import { SimulatedStore } from './simulated-store.js'

const START_US = 1_000_000
/** As often a take waits for a lease before it asks the store alone. */
const MOST_LOOKS = 8

/** Of the doubles in which the excess is counted. */
const ROUNDING = 1e-3

/** A request that waits for tokens. */
interface Waiting {
  readonly askedUs: number
  looks: number
}

/**
 * The coarse simulation, for many nodes: of each node only what it holds and knows of each key, which is the library's. Requests, renewals and
 * denials are decided as by the limiter. A call that takes longer than the timeout counts as an outage, whose requests are denied; there is no
 * circuit breaker and no local share.
 */
export function simulateLeases(group: NodeGroup): GroupFigures {
  return new LeaseNodes(group).run()
}

class LeaseNodes {
  readonly #group: NodeGroup
  /** Requests come from a generator of their own: those of the exact simulation are the same. */
  readonly #demand: Random
  readonly #random: Random
  readonly #timeline = new Timeline(START_US)
  readonly #meter: GroupMeter
  readonly #store: SimulatedStore
  readonly #grantOf: GrantOf
  readonly #nodes: Map<number, NodeKey>[]

  constructor(group: NodeGroup) {
    this.#group = group
    this.#demand = new Random(group.seed)
    this.#random = new Random(group.seed + 1)
    this.#meter = new GroupMeter(group, START_US)
    this.#store = new SimulatedStore(group, this.#timeline, this.#meter)
    this.#grantOf = grantsOf(this.#store.encoding, this.#store.leaseUs)
    this.#nodes = Array.from({ length: group.nodes }, () => new Map())
  }

  run(): GroupFigures {
    const { warmUpSeconds, seconds } = this.#group
    const endUs = START_US + (warmUpSeconds + seconds) * 1e6
    this.#arrive()
    while (this.#timeline.nowUs < endUs) this.#timeline.run(1)
    const { figures } = this.#meter
    // Leases are never over, whatever else they cost.
    if (figures.over > ROUNDING) throw new Error(`a key is ${figures.over} tokens over its policy`)
    return figures
  }

  #arrive(): void {
    const group = this.#group
    const random = this.#demand
    const { nowUs } = this.#timeline
    this.#timeline.inUs(arrivalUs(group, random.fraction()), () => this.#arrive())
    const key = keyOf(group, random.fraction())
    const node = Math.floor(random.fraction() * group.nodes)
    const keys = this.#nodes[node] as Map<number, NodeKey>
    let held = keys.get(key)
    if (held === undefined) {
      held = new NodeKey(node, key, new KeyLease(nowUs, group.horizonMs * 1000, group.policy.limit, () => this.#random.fraction()))
      keys.set(key, held)
    }
    held.lease.demand.request(1)
    if (!this.#decided(held, nowUs)) this.#wait(held, { askedUs: nowUs, looks: 0 })
  }

  /** Whether the node can decide now. */
  #decided(held: NodeKey, askedUs: number): boolean {
    const { nowUs } = this.#timeline
    const { lease } = held
    const isAllowed = lease.spend(nowUs, 1)
    if (!isAllowed && lease.deniedUntil(nowUs, 1) === undefined) return false
    if (!held.isAsking && lease.isLow(nowUs)) this.#ask(held)
    this.#meter.decided(held.key, askedUs, nowUs, isAllowed)
    return true
  }

  #wait(held: NodeKey, waiting: Waiting): void {
    held.lease.demand.join(1, this.#timeline.nowUs)
    held.waiting.push(waiting)
    if (!held.isAsking) this.#ask(held)
  }

  #ask(held: NodeKey): void {
    held.isAsking = true
    // All takes of this time are one request.
    this.#timeline.inUs(0, () => {
      const request = held.lease.want(this.#timeline.nowUs)
      if (!request.isLease) {
        held.isAsking = false
        const [first] = held.waiting.splice(0)
        if (first !== undefined) this.#alone(held, first)
        return
      }
      this.#store.call(
        held.key,
        this.#group.roundTripUs(held.node, this.#random.fraction()),
        (step, nowUs) => step.lease(nowUs, request.want, request.least, 0),
        (lease) => this.#answered(held, request, lease),
      )
    })
  }

  #answered(held: NodeKey, request: TokenRequest, lease: Parameters<GrantOf>[0]): void {
    const { nowUs } = this.#timeline
    const { timeoutMs = 100 } = this.#group
    const tookUs = nowUs - request.sentUs
    const isOut = tookUs > timeoutMs * 1000 || tookUs > surelyUs(this.#store.leaseUs)
    held.isAsking = false
    if (isOut) held.lease.failed(nowUs)
    else held.lease.addGrant(this.#grantOf(lease, request.least), request, nowUs)
    const waiting = held.waiting
    held.waiting = []
    for (const each of waiting) {
      held.lease.demand.leave(1)
      if (isOut) this.#meter.decided(held.key, each.askedUs, nowUs, false, true)
      else if (!this.#decided(held, each.askedUs)) this.#again(held, each)
    }
  }

  #again(held: NodeKey, waiting: Waiting): void {
    if (++waiting.looks < MOST_LOOKS) {
      this.#wait(held, waiting)
      return
    }
    held.lease.demand.join(1, this.#timeline.nowUs)
    this.#alone(held, waiting)
  }

  /** Decided by the store. */
  #alone(held: NodeKey, { askedUs }: Waiting): void {
    held.lease.demand.leave(1)
    this.#store.call(
      held.key,
      this.#group.roundTripUs(held.node, this.#random.fraction()),
      (step, nowUs) => [step.take(nowUs, 1).allowed, step.remainingAt(nowUs), step.untilFreeUs(nowUs, 1), step.untilFullUs(nowUs)] as const,
      ([isAllowed, remaining, freeUs, fullUs]) => {
        const { nowUs } = this.#timeline
        if (isAllowed) held.lease.passed(remaining)
        else held.lease.refuse(1, nowUs + Math.ceil(freeUs / 1000) * 1000, nowUs + fullUs, nowUs)
        this.#meter.decided(held.key, askedUs, nowUs, isAllowed)
      },
    )
  }
}

/** What one node has of one key. */
class NodeKey {
  readonly node: number
  readonly key: number
  readonly lease: KeyLease
  isAsking = false
  waiting: Waiting[] = []

  constructor(node: number, key: number, lease: KeyLease) {
    this.node = node
    this.key = key
    this.lease = lease
  }
}
