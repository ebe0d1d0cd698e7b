import type { CommandRunner } from '../../../sluicegate/dist/redis/command-runner.js'
import { limiterOver } from '../../../sluicegate/dist/redis/create-redis-limiter.js'
import { RedisKeys } from '../../../sluicegate/dist/redis/redis-keys.js'
import { RedisScripts } from '../../../sluicegate/dist/redis/redis-scripts.js'
import { manualClock } from '../../../sluicegate/dist/time/clock.js'
import { versionedOracleFor } from '../oracle/versioned-oracle.js'
import { Random } from '../random.js'
import { GivenTime } from '../redis/given-time.js'
import type { Account } from './net-history.js'
import { playSettled, type SettledResult } from './settled-history.js'
import { namedSpec, type SettledAlgorithm, STEPS, settledPlan } from './settled-plans.js'
import { type AnyLimiter, type ReceiptFault, settlingLimiter } from './settling-limiter.js'

/** Longer than any answer of a running server takes. */
const TIMEOUT_MS = 60_000

/** The history of a seed over the scripts of a real server, at given times; leased it has no update. */
export async function settledOnStore(
  runner: CommandRunner,
  prefix: string,
  seed: number,
  algorithm: SettledAlgorithm,
  mode: 'exact' | 'leased',
  fault?: ReceiptFault,
): Promise<SettledResult> {
  const random = new Random(seed)
  const plan = settledPlan(random, algorithm)
  const clock = manualClock(plan.startMs)
  const time = new GivenTime(runner)
  const options = { mode, outage: 'closed', timeoutMs: TIMEOUT_MS } as const
  const limiterOf = (account: Account) =>
    limiterOver(new RedisScripts(time, new RedisKeys(prefix)), namedSpec(plan.specs[account], account), options, clock)
  const limiters = { own: limiterOf('own'), other: limiterOf('other') }
  let account: Account = 'own'
  const set = (ms: number): void => {
    time.nowUs = Math.round(ms * 1000)
    clock.set(ms)
  }
  set(plan.startMs)
  const now = (): AnyLimiter => limiters[account]
  const flush = async (): Promise<void> => {
    for (let round = 0; round < 3; round++) {
      await new Promise(setImmediate)
      // Answered after all that was sent before it.
      await runner.send('k', ['EXISTS', 'k'])
    }
  }
  const subject = {
    limiter: settlingLimiter(now, fault),
    clock,
    set,
    flush,
    choose: (next: Account): void => {
      account = next
    },
    update: (spec: Parameters<typeof namedSpec>[0]): void => limiters.own.update(namedSpec(spec, 'own')),
    ...(mode === 'exact' && { oracleOf: versionedOracleFor }),
  }
  try {
    const updates = mode === 'exact' ? plan.updates : []
    return await playSettled(random, subject, { ...plan, updates, waits: false }, random.integer(STEPS.least, STEPS.most))
  } finally {
    limiters.own.close()
    limiters.other.close()
  }
}
