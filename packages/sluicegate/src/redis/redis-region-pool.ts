import type { CancelSignal } from '../shared/backend.js'
import type { CallGuard } from '../shared/calls/call-guard.js'
import type { Deposit, Draw, Drawn, DrawTerms, Lot, RegionPool } from '../shared/region-pool.js'
import { notUnderstood } from '../shared/steps/script-call.js'
import type { CommandRunner } from './command-runner.js'
import type { RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { REGION_SCRIPT } from './scripts.gen.js'

/** Numbers of a reply before the lots. */
const FIELDS = 8
/** Further ones of a claim, before the lots. */
const CLAIM_FIELDS = 4
/** Numbers of a lot. */
const LOT_FIELDS = 3
const [CLAIMED, SCARCE] = [1, 2]

/** What a region holds of one policy's keys, in its Redis: the script `lua/scripts/region.lua`. */
export class RedisRegionPool implements RegionPool {
  private readonly runner: CommandRunner
  private readonly keys: RedisKeys
  private readonly guard: CallGuard
  private readonly before: string

  /** @param keys of the region alone, also where two share a server. */
  constructor(runner: CommandRunner, keys: RedisKeys, guard: CallGuard, policy: string) {
    this.runner = runner
    this.keys = keys
    this.guard = guard
    this.before = keys.before('region', policy)
  }

  draw(key: string, { want, least, demand = -1 }: Draw, terms: DrawTerms, signal?: CancelSignal): Promise<Drawn> {
    const { periodUs, leadUs, claimUs, leaseUs, foreseenUs, isEager } = terms
    const constants = `${periodUs} ${leadUs} ${claimUs} ${leaseUs} ${foreseenUs} ${isEager ? 1 : 0}`
    return this.run('draw', key, `${want} ${least} ${demand} ${constants}`, drawnIn, signal)
  }

  deposit(key: string, given: Deposit): Promise<number> {
    const { isRenewal, claimedUs, lastUs, agoUs, tokens, wanted, least, deniedUs, blockedUs, rest, fullUs, total = -1 } = given
    const { periodUs, grantId } = given
    const times = [deniedUs, blockedUs].map(whole)
    const numbers = [isRenewal ? 1 : 0, claimedUs, whole(lastUs), whole(agoUs), tokens, wanted, least, ...times, rest, whole(fullUs), total]
    return this.run('deposit', key, [...numbers, periodUs, grantId].join(' '), numberIn)
  }

  reclaim(key: string, endUs: number): Promise<number> {
    return this.run('reclaim', key, `${endUs}`, numberIn)
  }

  back(key: string, { tokens, endUs, grantId }: Lot): Promise<boolean> {
    return this.run('back', key, `${tokens} ${endUs} ${grantId}`, numberIn).then((inTime) => inTime === 1)
  }

  owe(key: string, tokens: number): Promise<number> {
    return this.run('owe', key, `${tokens}`, numberIn)
  }

  settle(key: string): Promise<number> {
    return this.run('settle', key, '', numberIn)
  }

  lost(key: string, owed: number): Promise<unknown> {
    return this.run('lost', key, `${owed}`, numberIn)
  }

  block(key: string, us: number): Promise<unknown> {
    return this.run('block', key, `${us}`, numberIn)
  }

  reset(key: string): Promise<unknown> {
    return this.run('reset', key, '', numberIn)
  }

  private run<Answer>(
    verb: string,
    key: string,
    numbers: string,
    read: (reply: unknown) => Answer,
    signal?: CancelSignal,
  ): Promise<Answer> {
    const names = [this.before + this.keys.after(key)]
    return this.guard.guarded(key, (own) => runScript(this.runner, REGION_SCRIPT, names, [verb, numbers], read, signal ?? own))
  }
}

/** Whole microseconds that a double holds: bans may be longer. */
function whole(us: number): number {
  return Math.min(Math.ceil(us), Number.MAX_SAFE_INTEGER / 8)
}

function drawnIn(reply: unknown): Drawn {
  if (!Array.isArray(reply) || reply.length < FIELDS) throw notUnderstood(reply)
  const numbers = reply.map(Number)
  const [nowUs = 0, tokens = 0, left = 0, flags = 0, deniedUs = 0, blockedUs = 0, rest = 0, fullUs = 0, ...more] = numbers
  const [pace = 0, total = 0, agoUs = 0, owed = 0] = more
  const claim = flags & CLAIMED ? { pace, total, agoUs, owed } : undefined
  const first = claim === undefined ? FIELDS : FIELDS + CLAIM_FIELDS
  if ((numbers.length - first) % LOT_FIELDS !== 0) throw notUnderstood(reply)
  const lots: Lot[] = []
  for (let at = first; at < numbers.length; at += LOT_FIELDS) {
    lots.push({ tokens: numbers[at] as number, endUs: numbers[at + 1] as number, grantId: numbers[at + 2] as number })
  }
  return { nowUs, tokens, lots, left, claim, deniedUs, blockedUs, rest, fullUs, isScarce: (flags & SCARCE) !== 0 }
}

function numberIn(reply: unknown): number {
  if (typeof reply !== 'number' && typeof reply !== 'string') throw notUnderstood(reply)
  return Number(reply)
}
