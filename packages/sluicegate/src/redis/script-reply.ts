import { StoreError } from '../errors.js'
import type { KeyState, ScriptAnswer, ScriptLease } from './script-call.js'

const ANSWERS = 6
const TAKE_ANSWERS = 3
const LEASE_ANSWERS = 9

/**
 * Decodes the reply to `count` requests: all fields of `lua/steps/parts.lua`, or the few of `lua/steps/*-take.lua` for an ordinary take.
 *
 * @throws {StoreError} `OUTAGE` for any other reply.
 */
export function answerIn(reply: unknown, count: number): ScriptAnswer {
  const isArray = Array.isArray(reply)
  if (count === 1 && !isArray) return { states: [taken(reply, reply)] }
  if (count === 1 && isArray && reply.length === TAKE_ANSWERS) return { states: [taken(reply[0], reply, reply[1], reply[2])] }
  if (!isArray || reply.length !== 1 + ANSWERS * count) throw notUnderstood(reply)
  const states: KeyState[] = []
  for (let at = 1; at < reply.length; at += ANSWERS) {
    states.push({
      done: Number(reply[at]) === 1,
      debt: Number(reply[at + 1]),
      blockedUs: Number(reply[at + 2]),
      untilFreeUs: Number(reply[at + 3]),
      untilNewUs: Number(reply[at + 4]),
      waitUs: Number(reply[at + 5]),
    })
  }
  return { nowUs: Number(reply[0]), states }
}

/** A negative debt means denied: nothing was spent. */
function taken(debt: unknown, reply: unknown, untilFreeUs: unknown = 0, untilNewUs: unknown = 0): KeyState {
  const units = typeof debt === 'string' ? Number.parseInt(debt, 10) : debt
  if (typeof units !== 'number' || !Number.isSafeInteger(units)) throw notUnderstood(reply)
  const done = units >= 0
  return {
    done,
    debt: done ? units : -1 - units,
    blockedUs: 0,
    untilFreeUs: Number(untilFreeUs),
    untilNewUs: Number(untilNewUs),
    waitUs: 0,
  }
}

/** @throws {StoreError} `OUTAGE` for a reply that `lua/scripts/lease.lua` does not give. */
export function leaseIn(reply: unknown): ScriptLease {
  if (!Array.isArray(reply) || reply.length !== LEASE_ANSWERS) throw notUnderstood(reply)
  const [nowUs = 0, ready = 0, later = 0, debt = 0, blockedUs = 0, untilFreeUs = 0, untilNewUs = 0, laterUs = 0, endUs = 0] =
    reply.map(Number)
  return { nowUs, ready, later, debt, blockedUs, untilFreeUs, untilNewUs, laterUs, endUs }
}

function notUnderstood(reply: unknown): StoreError {
  return new StoreError('OUTAGE', `the store answered ${Array.isArray(reply) ? `${reply.length} values` : typeof reply}`)
}
