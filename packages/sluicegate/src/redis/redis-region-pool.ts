import type { CancelSignal } from '../shared/backend.js'
import type { CallGuard } from '../shared/calls/call-guard.js'
import type { Draw, Drawn, HomeAnswer, PoolBatch, Refill, RegionPool } from '../shared/region-pool.js'
import { notUnderstood } from '../shared/steps/step-answers.js'
import type { CommandRunner } from './command-runner.js'
import type { RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { REGION_SCRIPTS } from './scripts.gen.js'

/** Numbers of the reply to a draw, before the batches. */
const FIELDS = 16

/** What a region holds of one policy's keys, in its Redis: a script of `lua/scripts/region/` for each verb. */
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

  draw(key: string, draw: Draw, signal?: CancelSignal): Promise<Drawn> {
    return this.run('draw', key, draw, drawnIn, signal)
  }

  claim(key: string, claim: { readonly claimedUs: number; readonly claimUs: number }): Promise<number> {
    return this.run('claim', key, claim, numberIn)
  }

  refill(key: string, answer: Refill | HomeAnswer): Promise<number> {
    return this.run('refill', key, answer, numberIn)
  }

  async giveBack(key: string, batch: PoolBatch): Promise<boolean> {
    return (await this.run('give-back', key, batch, numberIn)) === 1
  }

  reclaim(key: string, endUs: number): Promise<number> {
    return this.run('reclaim', key, { endUs }, numberIn)
  }

  addDebt(key: string, tokens: number): Promise<number> {
    return this.run('add-debt', key, { tokens }, numberIn)
  }

  takeDebt(key: string): Promise<number> {
    return this.run('take-debt', key, {}, numberIn)
  }

  block(key: string, us: number): Promise<unknown> {
    return this.run('block', key, { us }, numberIn)
  }

  private run<Answer>(
    verb: keyof typeof REGION_SCRIPTS,
    key: string,
    given: object,
    read: (reply: unknown) => Answer,
    signal?: CancelSignal,
  ): Promise<Answer> {
    const names = [this.before + this.keys.after(key)]
    const args = [JSON.stringify(given)]
    return this.guard.guarded(key, (own) => runScript(this.runner, REGION_SCRIPTS[verb], names, args, read, signal ?? own))
  }
}

/** The reply of `draw.lua`; after it three numbers for each batch of the drawn tokens. */
function drawnIn(reply: unknown): Drawn {
  if (!Array.isArray(reply) || reply.length < FIELDS) throw notUnderstood(reply)
  const numbers = reply.map(Number)
  const [nowUs = 0, bornUs = 0, tokens = 0, left = 0, meteredUs = 0, blockedUs = 0, deniedUs = 0, deniedCost = 0] = numbers
  const [scarce, claimedUs = 0, renewing, rest = 0, fullUs = 0, pace = 0, total = 0, debt = 0] = numbers.slice(8)
  const batches: PoolBatch[] = []
  for (let at = FIELDS; at < numbers.length; at += 3) {
    batches.push({ tokens: numbers[at] as number, endUs: numbers[at + 1] as number, grantId: numbers[at + 2] as number })
  }
  const home = { meteredUs, blockedUs, deniedUs, deniedCost, isScarce: scarce === 1, rest, fullUs }
  return { nowUs, bornUs, tokens, left, ...home, claimedUs, isRenewing: renewing === 1, pace, total, debt, batches }
}

function numberIn(reply: unknown): number {
  if (typeof reply !== 'number' && typeof reply !== 'string') throw notUnderstood(reply)
  return Number(reply)
}
