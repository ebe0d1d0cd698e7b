import type { Decision } from 'sluicegate'
import { Random } from 'sluicegate-testkit'
import { Timeline } from 'sluicegate-testkit/leases/timeline.js'
import type { LeaseStep } from 'sluicegate-testkit/twins/lease-step.js'
import { grantsOf } from '../../../packages/sluicegate/dist/redis/script-call.js'
import type { Answer, Backend, Operation } from '../../../packages/sluicegate/dist/shared/backend.js'
import { CountedShare } from '../../../packages/sluicegate/dist/shared/outage/local-share.js'
import { SharedLimiter } from '../../../packages/sluicegate/dist/shared/shared-limiter.js'
import { arrivalUs, type GroupFigures, GroupMeter, keyOf, type NodeGroup } from './node-group.js'
import { SimulatedStore } from './simulated-store.js'
import { TimelineClock } from './timeline-clock.js'

const START_US = 1_000_000

/**
 * The exact simulation: each node is the limiter of the library, with its leases, timeouts, circuit breaker and outage mode, on a simulated
 * clock. Only the network and the processor of the store are modelled.
 */
export async function simulateLimiters(group: NodeGroup): Promise<GroupFigures> {
  const demand = new Random(group.seed)
  const random = new Random(group.seed + 1)
  const timeline = new Timeline(START_US)
  const meter = new GroupMeter(group, START_US)
  const store = new SimulatedStore(group, timeline, meter)
  const clock = new TimelineClock(timeline)
  const limiters = Array.from({ length: group.nodes }, (_, node) => limiterOf(group, store, clock, random, node))
  let isDone = false
  const arrive = (): void => {
    timeline.inUs(arrivalUs(group, demand.fraction()), arrive)
    const askedUs = timeline.nowUs
    const key = keyOf(group, demand.fraction())
    const fraction = demand.fraction()
    const node = group.nodeOf?.(fraction, secondsAt(askedUs)) ?? Math.floor(fraction * group.nodes)
    const limiter = limiters[node] as SharedLimiter
    const decided = ({ allowed, source }: Decision): void => {
      if (isDone) return
      meter.decided(key, askedUs, timeline.nowUs, allowed, source === 'outage')
      group.onDecided?.(node, { askedS: secondsAt(askedUs), atS: secondsAt(timeline.nowUs), allowed })
    }
    const decision = limiter.take(String(key))
    // Also one that is decided at once may have begun a refill.
    clock.isUnsettled = true
    if (decision instanceof Promise) void decision.then(decided)
    else decided(decision)
  }
  arrive()
  const endUs = START_US + (group.warmUpSeconds + group.seconds) * 1e6
  while (timeline.nowUs < endUs) {
    timeline.run(1)
    if (clock.isUnsettled) await clock.settle()
  }
  isDone = true
  for (const limiter of limiters) limiter.close()
  return meter.figures
}

function secondsAt(nowUs: number): number {
  return (nowUs - START_US) / 1e6
}

function limiterOf(group: NodeGroup, store: SimulatedStore, clock: TimelineClock, random: Random, node: number): SharedLimiter {
  const { policy, horizonMs, timeoutMs = 100, localShare } = group
  const grantOf = grantsOf(store.encoding, store.leaseUs)
  const call = <Result>(key: string, run: (step: LeaseStep, nowUs: number) => Result): Promise<Result> =>
    new Promise((resolve) => {
      // Without an answer the call times out.
      if (group.isCutOff?.(node, secondsAt(clock.nowMs() * 1000))) return
      store.call(Number(key), group.roundTripUs(node, random.fraction()), run, (answer) => {
        clock.isUnsettled = true
        resolve(answer)
      })
    })
  const backend: Backend = {
    lease: async ({ key, want, least }) => {
      return grantOf(await call(key, (step, nowUs) => step.lease(nowUs, want, least, 0)), least)
    },
    execute: (operation) => call(operation.key as string, (step, nowUs) => answerOf(group, operation, step, nowUs)),
  }
  return new SharedLimiter({
    policy,
    connect: () => backend,
    places: { serverOf: () => 'the store', slotOf: () => undefined },
    options: { timeoutMs, ...(localShare !== undefined && { localShare }) },
    countedShare: () =>
      new CountedShare(clock, async () => (group.isCutOff?.(node, secondsAt(clock.nowMs() * 1000)) ? never() : store.countNodes(node))),
    horizonMs,
    lateAdvice: 'raise the horizon',
    clock,
  })
}

function never(): Promise<number> {
  return new Promise(() => undefined)
}

/** Takes, and charges of what was spent without the store: as far as they fit, one by one. */
function answerOf({ policy }: NodeGroup, operation: Operation, step: LeaseStep, nowUs: number): Answer {
  const { limit, name } = policy
  let allowed = true
  let cost = 1
  if (operation.verb === 'take') {
    cost = operation.cost
    allowed = step.take(nowUs, cost).allowed
  } else if (operation.verb === 'charge') {
    for (let left = operation.tokens[0] ?? 0; left > 0 && step.take(nowUs, 1).allowed; left--);
  } else throw new TypeError(`no ${operation.verb} here`)
  const retryAfterMs = allowed ? 0 : Math.ceil(step.untilFreeUs(nowUs, cost) / 1000)
  return {
    done: allowed,
    decision: {
      allowed,
      limit,
      remaining: step.remainingAt(nowUs),
      retryAfterMs,
      resetAfterMs: Math.ceil(step.untilFullUs(nowUs) / 1000),
      policy: name,
      source: 'store',
    },
  }
}
