import type { Access } from '../../access.js'
import {
  type Awaitable,
  answersOf,
  type Decision,
  type Engine,
  type Key,
  type ServedPolicy,
  type TakePart,
  whenDone,
} from '../../engine/engine.js'
import { outcomeOf } from '../../engine/outcome.js'
import { askOf } from './ask.js'
import { refuseOtherSites } from './cross-site.js'
import { posting, STATUS } from './decide.js'
import { decisionObject } from './decision-json.js'
import type { RequestHead, Route } from './handler.js'
import { Parameters } from './parameters.js'
import { refusePermits } from './permit.js'
import { priorityOf } from './priority.js'
import { Problem } from './problem.js'
import { JSON_TYPE, reply } from './reply.js'

const MAX_TAKES = 100
const MAX_KEY_LENGTH = 1_024
/** Holds that number of the longest keys in UTF-8. */
const MAX_BATCH_BYTES = 524_288

/**
 * `/v1/batch`: several takes in one request. With `all` they pass together or not at all, and the status is that of the whole as of one take. Otherwise
 * each is decided by itself, in order, and the status is 200.
 */
export function batchRoute(engine: Engine, access: Access): Route {
  return posting((values, response) => {
    refuseOtherSites(response.req)
    const parameters = new Parameters(values, ['takes', 'all'])
    const isAll = parameters.boolean('all')
    // All of them are read before the first is taken.
    const parts = parameters.objects('takes', MAX_TAKES).map((take) => readPart(engine, access, response.req, take))
    return whenDone(isAll ? engine.takeAll(parts) : each(parts), (decisions) => {
      const body = { allowed: decisions.every(({ allowed }) => allowed), decisions: decisions.map(decisionObject) }
      reply(response, isAll ? statusOf(decisions) : 200, JSON_TYPE, JSON.stringify(body))
    })
  }, MAX_BATCH_BYTES)
}

function readPart(engine: Engine, access: Access, request: RequestHead, take: ReadonlyMap<string, unknown>): TakePart {
  const parameters = new Parameters(take, ['policy', 'key', 'cost', 'peek', 'priority'])
  const { served, key, cost } = askOf(engine, parameters)
  refusePermits(served)
  checkTake(served, key, cost)
  return { policy: served, key, cost, peekOnly: parameters.boolean('peek'), priority: priorityOf(request, access, parameters) }
}

/** What the engine would refuse, found before the takes in front of it are charged. */
function checkTake({ policy: { policies = [] } }: ServedPolicy, key: Key, cost: number): void {
  const keys = typeof key === 'string' ? [key] : key
  if (typeof key !== 'string' && keys.length !== policies.length)
    throw new Problem(400, 'KEY_INVALID', 'a list of keys is for an all-of, with a key for each of its policies')
  if (keys.some(({ length }) => length > MAX_KEY_LENGTH)) throw new Problem(400, 'KEY_INVALID', 'key must have at most 1024 characters')
  if (!Number.isInteger(cost) || cost < 1) throw new Problem(400, 'COST_INVALID', 'cost must be an integer of at least 1')
}

function each(parts: readonly TakePart[]): Awaitable<Decision[]> {
  return answersOf(parts, ({ policy, key, cost, peekOnly, priority }) =>
    peekOnly ? policy.peek(key, cost, priority) : policy.take(key, cost, priority),
  )
}

/** Impossible if one of them is: the same request can never pass. */
function statusOf(decisions: readonly Decision[]): number {
  const outcomes = decisions.map(outcomeOf)
  return STATUS[outcomes.find((outcome) => outcome === 'impossible') ?? outcomes.find((outcome) => outcome === 'denied') ?? 'allowed']
}
