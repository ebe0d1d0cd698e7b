import { KeyFault } from '../shared/calls/call-guard.js'
import { REMEMBERED_MS } from '../shared/outage/local-share.js'
import type { CommandRunner } from './command-runner.js'
import type { RedisKeys } from './redis-keys.js'
import { runScript } from './run-script.js'
import { NODES_SCRIPT } from './scripts.gen.js'

/** Ids that are remembered of one policy, some 100 bytes each. */
const MOST_NODES = 10_000

const BOUNDS = [String(REMEMBERED_MS * 1000), String(MOST_NODES)]

/**
 * How many limiters shared one of these policies of late: of several policies the most. The limiter `id` is one of them from now on. Each policy
 * has its count under one name, also on a cluster: all that share the policy call the same server.
 */
export async function countNodes(runner: CommandRunner, keys: RedisKeys, policies: readonly string[], id: string): Promise<number> {
  const names = new Set(policies.map((policy) => keys.before('nodes', policy).slice(0, -1)))
  const counts = [...names].map((name) => runScript(runner, NODES_SCRIPT, [name], [id, ...BOUNDS], countIn))
  return Math.max(...(await Promise.all(counts)))
}

function countIn(reply: unknown): number {
  if (Number.isSafeInteger(reply) && (reply as number) >= 1) return reply as number
  throw new KeyFault('the reply of the script has another form')
}
