import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import { until } from 'sluicegate-testkit'
import { budgetUse, readRecord, worstKey } from './admissions.js'
import { type Lab, POLICY, type ShardUse } from './lab.js'
import { admittedOverTime, countsOf, type LoadCounts, loadOn, marked, rounded, sampled } from './lab-load.js'
import { prometheusRange } from './lab-servers.js'
import { recoveryOf } from './recovery.js'
import type { Scenario } from './scenarios.js'
import { type NodeCounters, sumOfCounters } from './service-node.js'

/** A silence after which a primary is replaced, and how far a replica may be behind: what a failover may forget. */
const FORGOTTEN_MS = 1_100
/** A shard with this many times the calls of a mean one is hot. */
const HOT_FACTOR = 1.5

/** What one scenario measured, and whether its invariants held. */
export type ScenarioResult = Awaited<ReturnType<typeof runScenario>>

export async function runScenario(lab: Lab, scenario: Scenario, rate: number, seed: number, port = lab.balancerPort) {
  await lab.use({ mode: scenario.mode ?? 'leased' })
  const record = join(lab.folder, 'record')
  rmSync(record, { force: true })
  await sampled(lab.nodes)
  const before = { shards: await lab.shardUse(), ...countersOf(lab) }
  const startedS = Date.now() / 1_000
  const load = loadOn(port, 'api', record, ['--rate', String(scenario.rate ?? rate), '--keys', scenario.keys, '--seed', String(seed)])
  await until('the load runs', () => existsSync(record))
  const { startUs, marks } = await marked(
    lab.nodes,
    (fault) => scenario.run(lab, fault),
    () => {
      load.child.kill('SIGINT')
      return load.ended
    },
  )
  const endedS = Date.now() / 1_000
  await sampled(lab.nodes)
  const hot = scenario.hotKey === undefined ? [] : (await Promise.all(lab.nodes.map((node) => node.hotKeys()))).flat()
  const after = { shards: await lab.shardUse(), ...countersOf(lab) }
  if (load.stdout === '') throw new Error(`the load ended without a result: ${load.stderr}`)
  const result = JSON.parse(load.stdout) as LoadResult
  const answers = readRecord(record)
  const policy = { ...POLICY, limit: scenario.highestLimit ?? POLICY.limit }
  const { over } = worstKey(policy, answers)
  const outageTokens = after.outageTokens - before.outageTokens
  const forgotten = (scenario.failovers ?? 0) * (policy.burst + (policy.limit * FORGOTTEN_MS) / policy.windowMs)
  const allowedOver = outageTokens + forgotten
  const shards = shardsOf(before.shards, after.shards, result.seconds)
  const hotShard = await hotShardOf(lab, shards, hot)
  const keys = Number(/^uniform:(\d+)$/.exec(scenario.keys)?.[1] ?? Number.NaN)
  const use = budgetUse(POLICY, answers)
  const budget = keys <= 100 ? (keys * POLICY.limit * 1_000) / POLICY.windowMs : null
  const overTime = admittedOverTime(answers, startUs, result.seconds)
  const measured = {
    name: scenario.name,
    seed,
    seconds: result.seconds,
    ...countsOf([result]),
    perSecond: result.perSecond,
    p50Ms: result.latencyMs.p50,
    p99Ms: result.latencyMs.p99,
    /** Decisions that took a node longer than `SLOW_DECISION_MS`, by its own clock. Time in queues before the node is not in it. */
    slowDecisions: after.slowDecisions - before.slowDecisions,
    /** Calls to Redis for each admitted token. */
    callsPerToken: rounded((after.storeCalls - before.storeCalls) / Math.max(1, result.allowed)),
    shards,
    /** Of saturated keys; null where no key is. */
    budgetUse: use === undefined ? null : rounded(use),
    /** Tokens of the worst key over its policy. */
    over: rounded(over),
    allowedOver: rounded(allowedOver),
    /** Tokens that nodes admitted without the store. */
    outageTokens,
    hotShard,
    plot: { ...overTime, budget },
    marks,
    /** Null also where keys are not saturated. */
    recovery: budget === null ? null : recoveryOf(overTime, marks),
    /** Decisions a second as Prometheus saw them, at seconds from the start. */
    scraped: (await prometheusRange(lab.prometheusPort, 'sum(rate(sluicegate_decisions_total[3s]))', startedS, endedS)).map(
      ([atS, value]) => [rounded(atS - startedS), rounded(value)] as const,
    ),
  }
  return { ...measured, violations: violationsOf(scenario, measured) }
}

type Checked = {
  readonly over: number
  readonly allowedOver: number
  readonly hotShard: HotShard | null
}

function violationsOf(scenario: Scenario, result: LoadCounts & Checked): string[] {
  const { over, allowedOver, errors, unanswered, denied, allowed, hotShard } = result
  const violations: string[] = []
  if (over > allowedOver) violations.push(`a key is ${over} tokens over its policy, ${allowedOver} are allowed`)
  if (allowed === 0) violations.push('nothing was admitted')
  if (!scenario.mayFail && errors > 0) violations.push(`${errors} requests failed: ${JSON.stringify(result.errorTexts)}`)
  if (unanswered > 0) violations.push(`${unanswered} requests have no answer`)
  if (scenario.allPass && denied > 0) violations.push(`${denied} requests were denied below the limit`)
  if (scenario.hotKey !== undefined && hotShard?.key !== scenario.hotKey)
    violations.push(`the hot shard is not found by ${scenario.hotKey}, but ${JSON.stringify(hotShard)}`)
  return violations
}

function countersOf({ nodes }: Lab): NodeCounters {
  return sumOfCounters(nodes.map(({ counters }) => counters))
}

interface HotShard {
  readonly port: number
  readonly key: string
  readonly timesMean: number
}

/** Servers that ran scripts; a server that was restarted counts from its start. */
function shardsOf(before: readonly ShardUse[], after: readonly ShardUse[], seconds: number) {
  return after
    .map(({ port, cpuS, calls }) => {
      const earlier = before.find((each) => each.port === port)
      const since = earlier !== undefined && earlier.cpuS <= cpuS ? earlier : { cpuS: 0, calls: 0 }
      return { port, cpuPercent: rounded(((cpuS - since.cpuS) / seconds) * 100), calls: Math.max(0, calls - since.calls) }
    })
    .filter(({ calls }) => calls > 0)
}

/** The shard with far more calls than a mean one, and of its keys the one with the most demand. */
async function hotShardOf(
  lab: Lab,
  shards: ReturnType<typeof shardsOf>,
  demand: readonly { readonly key: string; readonly count: number }[],
): Promise<HotShard | null> {
  const [busiest] = [...shards].sort((a, b) => b.calls - a.calls)
  const mean = shards.reduce((sum, { calls }) => sum + calls, 0) / Math.max(3, shards.length)
  if (busiest === undefined || busiest.calls < HOT_FACTOR * mean) return null
  const counts = new Map<string, number>()
  for (const { key, count } of demand) counts.set(key, (counts.get(key) ?? 0) + count)
  for (const [key] of [...counts].sort(([, a], [, b]) => b - a)) {
    const primary = await lab.primaryOf(`lab:rate:api:{${key}}`)
    if (primary.port === busiest.port) return { port: busiest.port, key, timesMean: rounded(busiest.calls / mean) }
  }
  return null
}
