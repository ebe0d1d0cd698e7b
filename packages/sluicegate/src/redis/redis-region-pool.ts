import type { CancelSignal } from '../shared/backend.js'
import type { CallGuard } from '../shared/calls/call-guard.js'
import type { Batch, Draw, Drawn, HomeAnswer, Refill, RegionPool } from '../shared/region-pool.js'
import { notUnderstood } from '../shared/steps/script-call.js'
import type { CommandRunner } from './command-runner.js'
import type { RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { REGION_SCRIPTS } from './scripts.gen.js'

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

  async giveBack(key: string, batch: Batch): Promise<boolean> {
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

/** Names, each with its number; the last one with three numbers for each batch. */
function drawnIn(reply: unknown): Drawn {
  if (!Array.isArray(reply) || !Array.isArray(reply.at(-1))) throw notUnderstood(reply)
  const named: Record<string, number> = {}
  for (let at = 0; at < reply.length - 2; at += 2) named[reply[at]] = Number(reply[at + 1])
  const batches: Batch[] = []
  const lots = (reply.at(-1) as unknown[]).map(Number)
  for (let at = 0; at < lots.length; at += 3) {
    const [tokens = 0, endUs = 0, grantId = 0] = lots.slice(at, at + 3)
    batches.push({ tokens, endUs, grantId })
  }
  return { ...(named as unknown as Drawn), batches, isScarce: named.isScarce === 1, isRenewing: named.isRenewing === 1 }
}

function numberIn(reply: unknown): number {
  if (typeof reply !== 'number' && typeof reply !== 'string') throw notUnderstood(reply)
  return Number(reply)
}
