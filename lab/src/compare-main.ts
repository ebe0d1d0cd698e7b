import { setTimeout as rest } from 'node:timers/promises'
import { measuredWhere } from 'sluicegate-commands/load/load-result.js'
import { freePorts } from 'sluicegate-testkit'
import { Lab, POLICY } from './lab.js'
import { startBalancer } from './lab-servers.js'
import { runScenario, type ScenarioResult } from './run-scenario.js'
import { type Compared, saveRun, type Way } from './saved-runs.js'
import type { Scenario } from './scenarios.js'
import type { ServiceNode } from './service-node.js'

const USAGE = `npm run lab:compare -- [WAY]...

Sends the same traffic to four service nodes under each way of sharing a limit, kills one node in the middle, prints what each
admitted and writes lab/results; then npm run plots makes the table and the plot of docs/many-servers.md. With a WAY it runs that one and
only prints: split, exact, affinity, leases.`

const NODES = 4
const [KEYS, RATE, SEED] = [8, 400, 42]
const [WHOLE_MS, DEAD_MS] = [6_000, 6_000]

const WAYS: readonly Way[] = [
  { name: 'split', title: 'split quota', share: 1 / NODES, isShared: false, mode: 'exact', isAffine: false },
  { name: 'exact', title: 'shared store, exact', share: 1, isShared: true, mode: 'exact', isAffine: false },
  { name: 'affinity', title: 'session affinity', share: 1, isShared: false, mode: 'exact', isAffine: true },
  { name: 'leases', title: 'shared store, leases', share: 1, isShared: true, mode: 'leased', isAffine: false },
]

const CRASH: Scenario = {
  name: 'comparison',
  keys: `uniform:${KEYS}`,
  mayFail: true,
  run: async ({ nodes }, fault) => {
    const node = nodes.at(-1) as ServiceNode
    await rest(WHOLE_MS)
    await node.crash()
    await fault('a node is dead', () => rest(DEAD_MS))
    await node.start()
  },
}

const names = process.argv.slice(2)
if (names.some((name) => !WAYS.some((way) => way.name === name))) {
  console.error(USAGE)
  process.exitCode = names.includes('--help') ? 0 : 2
} else {
  await compare(WAYS.filter(({ name }) => names.length === 0 || names.includes(name)))
}

async function compare(ways: readonly Way[]): Promise<void> {
  const where = measuredWhere()
  await using lab = await Lab.start(NODES)
  const [port = 0] = await freePorts(1)
  const affine = await startBalancer(port, lab.nodes, lab.folder, { isAffine: true })
  const found: Compared[] = []
  try {
    for (const way of ways) {
      const one = await measured(lab, way, way.isAffine ? port : lab.balancerPort)
      found.push(one)
      const { useWhole, useDead, result } = one
      console.log(
        `${way.title}: ${useWhole.toFixed(2)} of the budget used, ${useDead.toFixed(2)} with a dead node, ${result.over} tokens over`,
      )
    }
  } finally {
    await affine.end()
  }
  if (ways.length === WAYS.length) saveRun('many-servers', { where, seed: SEED, results: found })
}

async function measured(lab: Lab, way: Way, port: number): Promise<Compared> {
  const { limit, windowMs, burst } = POLICY
  const policy = { limit: limit * way.share, windowMs, burst: burst * way.share }
  await lab.use({ policies: { api: policy }, mode: way.mode, redis: way.isShared ? lab.redis : undefined })
  const result = await runScenario(lab, { ...CRASH, mode: way.mode }, RATE, SEED, port)
  const [mark] = result.marks
  const from = mark?.fromX ?? 0
  const until = mark?.toX ?? 0
  // The burst at the start is no rate.
  return { way, result, useWhole: useOf(result, 2, from), useDead: useOf(result, from + 1, until) }
}

/** The mean rate of admissions between two times over the budget. */
function useOf({ plot: { xs, admitted, budget } }: ScenarioResult, fromX: number, toX: number): number {
  const within = admitted.filter((_, i) => (xs[i] as number) >= fromX && (xs[i] as number) < toX)
  return within.reduce((sum, each) => sum + each, 0) / Math.max(1, within.length) / (budget ?? 1)
}
