import { type LeaseStep, SOUND_RECORDS } from 'sluicegate-testkit/leases/lease-step.js'
import { leaseStepOf } from 'sluicegate-testkit/leases/lease-step-of.js'
import type { Timeline } from 'sluicegate-testkit/leases/timeline.js'
import { NodeSet } from 'sluicegate-testkit/outage/node-set.js'
import { leaseUsOf } from '../../../packages/sluicegate/dist/lease/leasing.js'
import { encodingsOf, type PolicyEncoding } from '../../../packages/sluicegate/dist/redis/policy-encoding.js'
import type { GroupMeter, NodeGroup } from './node-group.js'

/** A Redis server: the steps of the scripts (twins of `lua/`), on one processor, first come, first served. */
export class SimulatedStore {
  readonly encoding: PolicyEncoding
  readonly leaseUs: number
  readonly #timeline: Timeline
  readonly #meter: GroupMeter
  readonly #serviceUs: number
  readonly #steps = new Map<number, LeaseStep>()
  #freeUs = 0
  readonly #nodes = new NodeSet()

  constructor({ policy, horizonMs, serviceUs }: NodeGroup, timeline: Timeline, meter: GroupMeter) {
    this.leaseUs = horizonMs > 0 ? leaseUsOf(horizonMs) : 0
    this.encoding = encodingsOf(policy, () => this.leaseUs).encodings[0] as PolicyEncoding
    this.#timeline = timeline
    this.#meter = meter
    this.#serviceUs = serviceUs
  }

  /** A call from a node: over the network, through the queue of the server, and back. */
  call<Answer>(
    key: number,
    roundTripUs: number,
    run: (step: LeaseStep, nowUs: number) => Answer,
    answered: (answer: Answer) => void,
  ): void {
    const timeline = this.#timeline
    const thereUs = Math.floor(roundTripUs / 2)
    timeline.inUs(thereUs, () => {
      const doneUs = Math.max(timeline.nowUs, this.#freeUs) + this.#serviceUs
      this.#freeUs = doneUs
      timeline.inUs(doneUs - timeline.nowUs, () => {
        this.#meter.called(timeline.nowUs, this.#serviceUs)
        const answer = run(this.#stepOf(key), timeline.nowUs)
        timeline.inUs(Math.round(roundTripUs) - thereUs, () => answered(answer))
      })
    })
  }

  /** How many nodes share the policy. Its cost is left out: a call in 10 s. */
  countNodes(node: number): number {
    return this.#nodes.count(this.#timeline.nowUs, String(node))
  }

  #stepOf(key: number): LeaseStep {
    let step = this.#steps.get(key)
    if (step === undefined) {
      step = leaseStepOf(this.encoding, this.encoding.numbersAt(0).split(' ').map(Number), SOUND_RECORDS)
      this.#steps.set(key, step)
    }
    return step
  }
}
