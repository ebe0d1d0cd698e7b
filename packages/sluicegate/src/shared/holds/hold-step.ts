import type { HoldOperation, OpenHold } from '../backend.js'
import { type KeptHold, MOST_RECORDS, type StoredHolds, storedEnd } from './stored-holds.js'

/** A key as a step of a hold sees it. */
export interface HoldingKey {
  readonly holds: StoredHolds
  /** Tokens that would pass now, whatever is held; 0 while it is blocked. */
  readonly room: number
  readonly isBlocked: boolean
  /** Charges tokens, whatever is free. */
  charge(tokens: number): void
}

/** What came of a step. */
export interface HoldStepped {
  readonly done: boolean
  /** Tokens that were missing, where it was not done. */
  readonly lacks: number
  readonly hold: OpenHold | undefined
}

/** What is there of the hold at one key. */
interface Own {
  readonly spent: number
  readonly us: number
  readonly held: number
  readonly granted: number
  /** Tokens that were granted, whether they are still there or not: they may be spent. */
  readonly sure: number
}

interface Planned {
  readonly kept: number
  readonly granted: number
  /** What this hold may have of each key. */
  readonly free: readonly number[]
}

/** One step of a hold on all keys or on none. Twin of `lua/scripts/hold.lua`. */
export function holdStep(keys: readonly HoldingKey[], operation: HoldOperation, nowUs: number): HoldStepped {
  const { record } = operation
  const records = (keys[0] as HoldingKey).holds.records
  const known = record && records.get(record.id)
  if (record === undefined) return stepped(keys, operation, nowUs, undefined, 0)
  const faulty = (fault: OpenHold['fault']): HoldStepped => ({ done: false, lacks: 1, hold: { ...answerOf(known, nowUs), fault } })
  if (known === undefined) {
    if (record.call !== 0) return faulty('unknown')
    if (records.size >= MOST_RECORDS) return faulty(undefined)
    return stepped(keys, operation, nowUs, known, 0)
  }
  // A close without a number is repeated as it was.
  const call = record.call ?? (known.isClosed && operation.hold === 0 ? known.call : known.call + 1)
  if (call === known.call) return { done: known.isDone, lacks: 1, hold: answerOf(known, nowUs) }
  if (known.isClosed) return faulty('closed')
  return call < known.call ? faulty('passed') : stepped(keys, operation, nowUs, known, call)
}

function stepped(
  keys: readonly HoldingKey[],
  operation: HoldOperation,
  nowUs: number,
  known: KeptHold | undefined,
  call: number,
): HoldStepped {
  const { record, before } = operation
  const ttlUs = known?.ttlUs ?? operation.ttlUs
  const isDebt = operation.hold === 0 ? operation.isDebt : (known?.isDebt ?? operation.isDebt)
  const used = known?.used ?? 0
  const spent = record?.total === undefined ? operation.spent : Math.max(0, record.total - used)
  const stood = known ?? (before && { us: before.state as number, rest: before.rest, granted: before.granted })
  const owns = keys.map(({ holds }) => ownOf(holds, stood, spent, nowUs))
  const { hold, want, least, count } = together(keys, operation)
  const most = known?.most ?? record?.most ?? Number.POSITIVE_INFINITY
  const isBeyond = record !== undefined && record.total === undefined && used + spent > most
  const planned = isBeyond ? undefined : plan(keys, owns, hold, want, least, isDebt)
  if (planned === undefined) {
    const isLater = known?.waits === true && !isBeyond
    if (isLater) freed(keys, owns, known, nowUs)
    else if (known !== undefined) Object.assign(known, { call, isDone: false })
    const fault = isBeyond ? 'beyond' : undefined
    const lacks = isLater ? spent : lackOf(owns, hold, least)
    return { done: false, lacks, hold: record && { ...answerOf(known, nowUs), fault } }
  }
  const { kept, granted, free } = planned
  const us = kept > 0 ? storedEnd(nowUs, ttlUs) : 0
  let over = 0
  for (const [i, key] of keys.entries()) {
    const own = owns[i] as Own
    over = Math.max(over, own.spent - (free[i] as number))
    key.holds.move(own.us, -own.held, -own.granted)
    key.holds.move(us, kept - granted, granted)
    if (own.spent > 0) key.charge(own.spent)
  }
  const after: KeptHold = {
    call,
    isClosed: hold === 0,
    isDone: true,
    rest: kept - granted,
    granted,
    us,
    over: (known?.over ?? 0) + over,
    used: used + spent,
    ttlUs,
    isDebt: known?.isDebt ?? operation.isDebt,
    waits: known?.waits ?? record?.waits === true,
    most,
  }
  // What has ended still needs a time from which its record counts.
  if (record !== undefined) (keys[0] as HoldingKey).holds.records.set(record.id, { ...after, us: us === 0 ? nowUs : us })
  return {
    done: true,
    lacks: 0,
    hold: { ...answerOf(after, nowUs), ...(record && { spent, debt: over }), ...(operation.count !== undefined && { count }) },
  }
}

/** The piece waits: what is held is free meanwhile. */
function freed(keys: readonly HoldingKey[], owns: readonly Own[], known: KeptHold, nowUs: number): void {
  for (const [i, { holds }] of keys.entries()) {
    const { us, held, granted } = owns[i] as Own
    holds.move(us, -held, -granted)
  }
  Object.assign(known, { rest: 0, granted: 0, us: nowUs })
}

/** What opens: of several that are alike as many as find room, but one at least. */
function together(keys: readonly HoldingKey[], { hold, want, least, count: most = 1 }: HoldOperation) {
  if (most === 1 || hold === 'rest' || hold === 0) return { hold, want, least, count: 1 }
  const room = Math.min(...keys.map(({ holds, room: rooms }) => rooms - holds.total))
  const count = Math.max(1, Math.min(most, Math.floor(room / hold)))
  return { hold: count * hold, want: count * want, least: count * least, count }
}

/** What is there of the hold. One that has ended is free, and what was granted of it has been charged. */
function ownOf(holds: StoredHolds, stood: Pick<KeptHold, 'us' | 'rest' | 'granted'> | undefined, spent: number, nowUs: number): Own {
  const none = { spent, us: 0, held: 0, granted: 0, sure: 0 }
  if (stood === undefined) return none
  if (stood.us <= nowUs) return { ...none, spent: Math.max(0, spent - stood.granted) }
  const slot = holds.slotAt(stood.us)
  const [held, granted] = [Math.min(slot?.held ?? 0, stood.rest), Math.min(slot?.granted ?? 0, stood.granted)]
  return { spent, us: stood.us, held, granted, sure: stood.granted }
}

/** What is held afterwards, and granted of it; undefined where there is no room. */
function plan(
  keys: readonly HoldingKey[],
  owns: readonly Own[],
  hold: number | 'rest',
  want: number,
  least: number,
  isDebt: boolean,
): Planned | undefined {
  let kept = Number.POSITIVE_INFINITY
  for (const { spent, held, granted } of owns) kept = Math.min(kept, hold === 'rest' ? Math.max(0, held + granted - spent) : hold)
  let room = Number.POSITIVE_INFINITY
  const free: number[] = []
  // Also work that may go into debt begins only where there is room.
  const mustFit = !isDebt || (hold !== 'rest' && hold > 0)
  for (const [i, { holds, room: rooms, isBlocked }] of keys.entries()) {
    const { spent, held, granted, sure } = owns[i] as Own
    const own = held + granted
    // Without what others hold.
    const mine = Math.max(own, sure, rooms - holds.total + own)
    if (mustFit && (isBlocked || spent + kept > mine)) return undefined
    free.push(mine)
    room = Math.min(room, Math.max(0, mine - spent - kept))
  }
  const granted = Math.min(want, kept + room)
  return granted < least ? undefined : { kept: Math.max(kept, granted), granted, free }
}

function lackOf(owns: readonly Own[], hold: number | 'rest', least: number): number {
  const needed = Math.max(hold === 'rest' ? 0 : hold, least)
  return Math.max(1, ...owns.map(({ spent, held, granted }) => spent + needed - held - granted))
}

function answerOf(kept: KeptHold | undefined, nowUs: number): OpenHold {
  if (kept === undefined) return { rest: 0, granted: 0, forUs: 0, over: 0, used: 0 }
  const { rest, granted, us, over, used } = kept
  return { rest, granted, forUs: Math.max(0, us - nowUs), over, used, state: us }
}
