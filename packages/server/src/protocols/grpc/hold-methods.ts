import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type { Duration } from '@bufbuild/protobuf/wkt'
import type { Access } from '../../access.js'
import {
  type Awaitable,
  type Cost,
  DEFAULT_HOLD_MS,
  type Engine,
  type HoldFault,
  type Key,
  MAX_HOLD_MS,
  MAX_HOLD_WAIT_MS,
  type ServedPolicy,
  type WorkState,
  whenDone,
} from '../../engine/engine.js'
import { decisionOf, durationOf } from './decision-message.js'
import { inTime } from './in-time.js'
import {
  AddRequestSchema,
  AddResponseSchema,
  CloseRequestSchema,
  CloseResponseSchema,
  type Cost as CostMessage,
  type OpenRequest,
  OpenRequestSchema,
  OpenResponseSchema,
  Over,
  type WorkSchema,
} from './messages/sluicegate/v1/limiter.gen.js'
import type { Call, Method } from './method.js'
import { priorityOf } from './priority.js'
import { decoded, GrpcError, STATUS } from './status.js'

/** Work whose cost is known only afterwards, of `sluicegate.v1.Limiter`. */
export function holdMethods(engine: Engine, access: Access, policyOf: (name: string) => ServedPolicy): [name: string, method: Method][] {
  return [
    ['Open', { kind: 'unary', answer: (message, call) => open(engine, access, policyOf, message, call) }],
    ['Add', { kind: 'unary', answer: (message, call) => add(engine, message, call) }],
    ['Close', { kind: 'unary', answer: (message, call) => close(engine, message, call) }],
  ]
}

const OVER = { [Over.CUT]: 'cut', [Over.WAIT]: 'wait', [Over.FINISH]: 'finish' } as const

function open(
  engine: Engine,
  access: Access,
  policyOf: (name: string) => ServedPolicy,
  message: Uint8Array,
  call: Call,
): Awaitable<Uint8Array> {
  const request = decoded(OpenRequestSchema, message)
  const served = policyOf(request.policy)
  const key = keyOf(served, request)
  const over = OVER[request.over] ?? 'cut'
  const expected = costOf(request.expect)
  const most = costOf(request.most)
  const asked = {
    expect: expected === undefined ? ('learned' as const) : engine.heldFor(expected),
    most: most === undefined ? Number.POSITIVE_INFINITY : engine.heldFor(most),
    ttlMs: ttlMsOf(request.ttl, over === 'wait' ? MAX_HOLD_WAIT_MS : MAX_HOLD_MS),
    over,
    id: request.id === '' ? undefined : request.id,
  }
  const opened = engine.holds.open(served, key, asked, served.floorOf(key, priorityOf(call, access)))
  return bytesOf(opened, call, (answer) => {
    const { decision, id = '', ttlMs: _, ...state } = answered(answer)
    return toBinary(OpenResponseSchema, create(OpenResponseSchema, { decision: decisionOf(decision), holdId: id, work: workOf(state) }))
  })
}

function add(engine: Engine, message: Uint8Array, call: Call): Awaitable<Uint8Array> {
  const { holdId, cost, call: number } = decoded(AddRequestSchema, message)
  return bytesOf(engine.holds.add(holdId, costOf(cost) ?? 0, numberOf(number)), call, (answer) => {
    const { isAdded, decision, ...state } = answered(answer)
    const { policy = '', retryAfterMs = Number.POSITIVE_INFINITY } = decision ?? {}
    const retryAfter = Number.isFinite(retryAfterMs) ? { retryAfter: durationOf(retryAfterMs) } : {}
    const response = { allowed: isAdded, work: workOf(state), ...(!isAdded && { policy, ...retryAfter }) }
    return toBinary(AddResponseSchema, create(AddResponseSchema, response))
  })
}

function close(engine: Engine, message: Uint8Array, call: Call): Awaitable<Uint8Array> {
  const { holdId, cost, call: number } = decoded(CloseRequestSchema, message)
  return bytesOf(engine.holds.close(holdId, costOf(cost), numberOf(number)), call, (answer) => {
    const { decision, ...state } = answered(answer)
    return toBinary(CloseResponseSchema, create(CloseResponseSchema, { decision: decisionOf(decision), work: workOf(state) }))
  })
}

function bytesOf<Value>(value: Awaitable<Value>, call: Call, write: (value: Value) => Uint8Array): Awaitable<Uint8Array> {
  return inTime(whenDone(value, write) as Awaitable<Uint8Array>, call)
}

function keyOf({ policy: { policies = [] } }: ServedPolicy, { keys, namedKeys }: OpenRequest): Key {
  const given = Object.keys(namedKeys)
  if (given.length > 0) {
    const names = policies.map(({ name }) => name)
    if (keys.length === 0 && given.length === names.length && names.every((name) => Object.hasOwn(namedKeys, name)))
      return names.map((name) => namedKeys[name] as string)
    throw new GrpcError(STATUS.invalidArgument, `named_keys must have one key for each of ${names.join(', ') || 'several policies'}`)
  }
  const [key] = keys
  if (key === undefined) throw new GrpcError(STATUS.invalidArgument, 'keys must have at least one key')
  return keys.length === 1 ? key : keys
}

/** Undefined: it is left out. */
function costOf(message: CostMessage | undefined): Cost | undefined {
  const { cost } = message ?? {}
  if (cost === undefined || cost.case === undefined) return undefined
  if (cost.case === 'tokens') return Number(cost.value)
  const { model, input, cached, output } = cost.value
  return { model, input: Number(input), cached: Number(cached), output: Number(output) }
}

function numberOf(call: bigint): number | undefined {
  if (call > BigInt(Number.MAX_SAFE_INTEGER)) throw new GrpcError(STATUS.invalidArgument, 'call must be at most 9007199254740991')
  return call === 0n ? undefined : Number(call)
}

function ttlMsOf(ttl: Duration | undefined, mostMs: number): number {
  if (ttl === undefined) return DEFAULT_HOLD_MS
  const ttlMs = Math.ceil(Number(ttl.seconds) * 1_000 + ttl.nanos / 1e6)
  if (ttlMs >= 10 && ttlMs <= mostMs) return ttlMs
  throw new GrpcError(STATUS.invalidArgument, `ttl must be 10 ms to ${mostMs / 1_000} s`)
}

function workOf({ used, held, over, affordable }: WorkState): MessageInitShape<typeof WorkSchema> {
  return { used: BigInt(used), held: BigInt(held), over: BigInt(over), affordable: BigInt(affordable) }
}

const FAULTS = {
  unknown: [
    STATUS.notFound,
    'there is no such hold: it never was, it ended more than its ttl ago, it is forgotten, as many others have ended or opened since, its policy was removed, or the service was restarted',
  ],
  closed: [STATUS.failedPrecondition, 'this hold was closed'],
  passed: [
    STATUS.failedPrecondition,
    'a later call of this hold was answered before: number each call one higher, and open other work with another id',
  ],
} as const

/** @throws {GrpcError} where there is no answer. */
function answered<Answer extends object>(answer: Answer | HoldFault): Answer {
  if (!('fault' in answer)) return answer
  const [status, message] = FAULTS[answer.fault]
  throw new GrpcError(status, message)
}
