import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measuredWhere } from 'sluicegate-commands/load/load-result.js'
import { Random } from 'sluicegate-testkit'
import { Lab } from './lab.js'
import { Ocean } from './ocean/ocean.js'
import { OCEAN_SCENARIOS } from './ocean/ocean-scenarios.js'
import { type OceanResult, runOcean } from './ocean/run-ocean.js'
import { runScenario, type ScenarioResult } from './run-scenario.js'
import { saveRun, soakResult } from './saved-runs.js'
import { SCENARIOS } from './scenarios.js'

const USAGE = `npm run lab -- [SCENARIO]... [options]

Starts service nodes, a Redis Cluster, a load balancer and Prometheus on loopback, sends load, breaks parts of it, and checks
from recorded answers that invariants hold. Exit code 1 if one does not. Scenarios of the ocean have three regions, each with a
Redis and two nodes, and a home far away.

  SCENARIO          one or more of the list below; default all of them
  --nodes N         service nodes (default 4)
  --rate N          requests a second (default 400)
  --only PART       the cluster, or the ocean; default both, and for a soak the cluster
  --soak MINUTES    scenarios in random order for this long
  --seed N          repeats the order and the requests of a run that printed it
  --out FOLDER      where lab.json and ocean.json are written (default the current folder's lab-report)
  --save            writes lab/results; then npm run plots makes the tables and plots of docs/lab.md

${[...SCENARIOS, ...OCEAN_SCENARIOS].map(({ name }) => `  ${name}`).join('\n')}`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    nodes: { type: 'string', default: '4' },
    rate: { type: 'string', default: '400' },
    only: { type: 'string' },
    soak: { type: 'string' },
    seed: { type: 'string' },
    out: { type: 'string', default: 'lab-report' },
    save: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const [nodes, rate, seed] = [Number(values.nodes), Number(values.rate), Number(values.seed ?? Date.now() % 1_000_000)]
const soakMs = values.soak === undefined ? undefined : Number(values.soak) * 60_000
const only = values.only ?? (soakMs === undefined ? undefined : 'cluster')
const isChosen = ({ name }: { readonly name: string }): boolean => positionals.length === 0 || positionals.includes(name)
const chosen = only === 'ocean' ? [] : SCENARIOS.filter(isChosen)
const oceans = only === 'cluster' ? [] : OCEAN_SCENARIOS.filter(isChosen)
const isWrong =
  (only !== undefined && only !== 'cluster' && only !== 'ocean') ||
  chosen.length + oceans.length < Math.max(1, positionals.length) ||
  !(nodes >= 1 && nodes <= 32 && rate >= 1 && seed >= 0) ||
  (soakMs !== undefined && !(soakMs > 0)) ||
  (values.save && positionals.length > 0)

if (values.help || isWrong) {
  console.error(USAGE)
  process.exitCode = values.help ? 0 : 2
} else {
  console.log(`seed ${seed}`)
  if (chosen.length > 0) await runCluster()
  if (oceans.length > 0) await runOceans()
}

async function runCluster(): Promise<void> {
  await using lab = await Lab.start(nodes)
  console.log(`Prometheus: http://127.0.0.1:${lab.prometheusPort}`)
  const write = written('lab', { seed, nodes })
  const { results, ...setting } = await runAll(chosen, (scenario, own) => runScenario(lab, scenario, rate, own), write)
  if (values.save && soakMs === undefined) saveRun('lab', { ...setting, nodes, rate, results })
  else if (values.save)
    saveRun('soak', { ...setting, nodes, rate, results: results.map((each, i) => soakResult(each, setting.ended[i] ?? 0)) })
}

async function runOceans(): Promise<void> {
  await using ocean = await Ocean.start()
  const write = written('ocean', { seed })
  const { results, ...setting } = await runAll(oceans, (scenario, own) => runOcean(ocean, scenario, own), write)
  if (values.save && soakMs === undefined) saveRun('ocean', { ...setting, results })
  else if (values.save) saveRun('ocean-soak', { ...setting, results: results.map((each, i) => soakResult(each, setting.ended[i] ?? 0)) })
}

function written(name: string, about: object): (results: readonly object[]) => void {
  return (results) => writeFileSync(join(values.out, `${name}.json`), `${JSON.stringify({ ...about, results }, undefined, 1)}\n`)
}

/** Scenarios one after the other, or in random order for a time. @param write called after each: what fails later takes nothing back. */
async function runAll<S extends { readonly name: string }, Result extends ScenarioResult | OceanResult>(
  scenarios: readonly S[],
  run: (scenario: S, seed: number) => Promise<Result>,
  write: (results: readonly Result[]) => void,
) {
  const where = measuredWhere()
  const random = new Random(seed)
  const results: Result[] = []
  const ended: number[] = []
  const startMs = performance.now()
  const minutes = (): number => Math.round((performance.now() - startMs) / 6_000) / 10
  mkdirSync(values.out, { recursive: true })
  for (let i = 0; soakMs === undefined ? i < scenarios.length : performance.now() < startMs + soakMs; i++) {
    const scenario = soakMs === undefined ? (scenarios[i] as S) : random.pick(scenarios)
    const result = await run(scenario, random.integer(0, 2 ** 31))
    results.push(result)
    ended.push(minutes())
    const { perSecond, p99Ms, over, allowedOver, violations } = result
    const at = soakMs === undefined ? `${i + 1} of ${scenarios.length}` : `${minutes()} of ${soakMs / 60_000} min`
    const text = violations.join('; ') || 'invariants hold'
    console.log(`[${at}] ${scenario.name}: ${perSecond}/s, 99 % ${p99Ms} ms, ${over} over of ${allowedOver}; ${text}`)
    if (violations.length > 0) process.exitCode = 1
    write(results)
  }
  return { where, seed, results, ended, ...(soakMs !== undefined && { minutes: minutes() }) }
}
