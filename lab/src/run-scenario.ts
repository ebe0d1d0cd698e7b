import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import type { ReportMark } from 'sluicegate-commands/report/report.js'
import { until } from 'sluicegate-testkit'
import { admittedOverTime, budgetUse, type RecordedAnswer, readRecord, recoveryOf, worstKey } from './admissions.js'
import { type Lab, POLICY, type ShardUse } from './lab.js'
import { loadOn, machineUs, rounded } from './lab-load.js'
import type { FaultMarker, Scenario } from './scenarios.js'
import { type LabPolicy, type NodeCounters, type ServiceNode, sumOfCounters } from './service-node.js'

/** A silence after which a primary is replaced, and how far a replica may be behind: what a failover may forget. */
const FORGOTTEN_MS = 1_100
/** A shard with this many times the calls of a mean one is hot. */
const HOT_FACTOR = 1.5
const SAMPLE_MS = 500

/** Load that runs, and afterwards what came of it. */
export interface RunningLoad {
  stop(): Promise<unknown>
  results(): readonly LoadResult[]
  /** By region, where there are some. */
  answers(): readonly (readonly RecordedAnswer[])[]
}

/** What is seen of nodes under load while a scenario runs. */
export type Observed = Awaited<ReturnType<typeof observed>>

/** Runs a scenario under load while the counters of the nodes are read, marks the times of its faults in seconds, and stops the load also when it fails. */
export async function observed(
  nodes: readonly ServiceNode[],
  begin: () => Promise<RunningLoad>,
  run: (load: RunningLoad, fault: FaultMarker) => Promise<void>,
) {
  const sampled = async (): Promise<NodeCounters> => {
    await Promise.all(nodes.map((node) => node.sample()))
    return sumOfCounters(nodes.map(({ counters }) => counters))
  }
  const before = await sampled()
  const load = await begin()
  const startUs = machineUs()
  const sinceS = (): number => (machineUs() - startUs) / 1_000_000
  const sampling = setInterval(() => void sampled(), SAMPLE_MS)
  const marks: ReportMark[] = []
  try {
    await run(load, async (label, fault) => {
      const fromX = sinceS()
      await fault()
      marks.push({ fromX, toX: sinceS(), label })
    })
  } finally {
    clearInterval(sampling)
    await load.stop()
  }
  const seconds = sinceS()
  const after = await sampled()
  const since = (name: keyof NodeCounters): number => after[name] - before[name]
  return { startUs, seconds, marks, since, results: load.results(), answers: load.answers() }
}

/** Tokens that a failover may add. */
export function forgottenBy(failovers: number | undefined, { limit, windowMs, burst }: LabPolicy): number {
  return (failovers ?? 0) * (burst + (limit * FORGOTTEN_MS) / windowMs)
}

/** What is measured of every scenario. */
export function figuresOf({ results, answers, since, marks }: Observed, policy: LabPolicy) {
  const sum = (of: 'sent' | 'allowed' | 'denied' | 'errors' | 'unanswered'): number => results.reduce((all, each) => all + each[of], 0)
  return {
    sent: sum('sent'),
    allowed: sum('allowed'),
    denied: sum('denied'),
    errors: sum('errors'),
    unanswered: sum('unanswered'),
    errorTexts: Object.assign({}, ...results.map(({ errorTexts }) => errorTexts)) as Readonly<Record<string, number>>,
    /** Decisions that took a node longer than `SLOW_DECISION_MS`, by its own clock. Time in queues before the node is not in it. */
    slowDecisions: since('slowDecisions'),
    /** Tokens of the worst key over its policy. */
    over: rounded(worstKey(policy, answers.flat()).over),
    /** Tokens that nodes admitted without the store. */
    outageTokens: since('outageTokens'),
    marks,
  }
}

interface Checked extends ReturnType<typeof figuresOf> {
  readonly allowedOver: number
}

/** What no scenario may do. */
export function violationsIn({ over, allowedOver, allowed, errors, errorTexts, unanswered }: Checked, mayFail = false): string[] {
  const violations: string[] = []
  if (over > allowedOver) violations.push(`a key is ${over} tokens over its policy, ${allowedOver} are allowed`)
  if (allowed === 0) violations.push('nothing was admitted')
  if (!mayFail && errors > 0) violations.push(`${errors} requests failed: ${JSON.stringify(errorTexts)}`)
  if (unanswered > 0) violations.push(`${unanswered} requests have no answer`)
  return violations
}

/** What one scenario of the cluster measured, and whether its invariants held. */
export type ScenarioResult = Awaited<ReturnType<typeof runScenario>>

export async function runScenario(lab: Lab, scenario: Scenario, rate: number, seed: number, port = lab.balancerPort) {
  await lab.use({ mode: scenario.mode ?? 'leased' })
  const shardsBefore = await lab.shardUse()
  const seen = await observed(
    lab.nodes,
    () => loadFrom(lab, port, ['--rate', String(scenario.rate ?? rate), '--keys', scenario.keys, '--seed', String(seed)]),
    (_, fault) => scenario.run(lab, fault),
  )
  const hot = scenario.hotKey === undefined ? [] : (await Promise.all(lab.nodes.map((node) => node.hotKeys()))).flat()
  const [result] = seen.results as [LoadResult]
  const answers = seen.answers.flat()
  const shards = shardsOf(shardsBefore, await lab.shardUse(), result.seconds)
  const policy = { ...POLICY, limit: scenario.highestLimit ?? POLICY.limit }
  const figures = figuresOf(seen, policy)
  const keys = Number(/^uniform:(\d+)$/.exec(scenario.keys)?.[1] ?? Number.NaN)
  const use = budgetUse(POLICY, answers)
  const budget = keys <= 100 ? (keys * POLICY.limit * 1_000) / POLICY.windowMs : null
  const overTime = admittedOverTime(answers, seen.startUs, result.seconds)
  const measured = {
    name: scenario.name,
    seed,
    seconds: result.seconds,
    perSecond: result.perSecond,
    p50Ms: result.latencyMs.p50,
    p99Ms: result.latencyMs.p99,
    ...figures,
    /** Calls to Redis for each admitted token. */
    callsPerToken: rounded(seen.since('storeCalls') / Math.max(1, result.allowed)),
    shards,
    /** Of saturated keys; null where no key is. */
    budgetUse: use === undefined ? null : rounded(use),
    allowedOver: rounded(figures.outageTokens + forgottenBy(scenario.failovers, policy)),
    hotShard: await hotShardOf(lab, shards, hot),
    plot: { ...overTime, budget },
    /** Null also where keys are not saturated. */
    recovery: budget === null ? null : recoveryOf(overTime, seen.marks),
  }
  const { denied, hotShard } = measured
  const violations = violationsIn(measured, scenario.mayFail)
  if (scenario.allPass && denied > 0) violations.push(`${denied} requests were denied below the limit`)
  if (scenario.hotKey !== undefined && hotShard?.key !== scenario.hotKey)
    violations.push(`the hot shard is not found by ${scenario.hotKey}, but ${JSON.stringify(hotShard)}`)
  return { ...measured, violations }
}

async function loadFrom({ folder }: Lab, port: number, requests: readonly string[]): Promise<RunningLoad> {
  const record = join(folder, 'record')
  rmSync(record, { force: true })
  const load = loadOn(port, 'api', record, requests)
  await until('the load runs', () => existsSync(record))
  return {
    stop: () => {
      load.child.kill('SIGINT')
      return load.ended
    },
    results: () => {
      if (load.stdout === '') throw new Error(`the load ended without a result: ${load.stderr}`)
      return [JSON.parse(load.stdout) as LoadResult]
    },
    answers: () => [readRecord(record)],
  }
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
