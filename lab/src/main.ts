import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { measuredWhere } from 'sluicegate-commands/load/machine-text.js'
import { htmlReport } from 'sluicegate-commands/report/html-report.js'
import { textReport } from 'sluicegate-commands/report/text-report.js'
import { Random } from 'sluicegate-testkit'
import { Lab } from './lab.js'
import { soakResult } from './lab-page.js'
import { labReport } from './lab-report.js'
import { runOceans, saveOcean } from './ocean/ocean-runs.js'
import { OCEAN_SCENARIOS } from './ocean/ocean-scenarios.js'
import { runScenario, type ScenarioResult } from './run-scenario.js'
import { publishRuns, saveRun } from './saved-runs.js'
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
  --out FOLDER      where lab.html and lab.json are written (default the current folder's lab-report)
  --save            writes lab/results, and from it the tables and plots of docs/lab.md
  --render          starts nothing: writes these tables and plots again from lab/results

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
    render: { type: 'boolean', default: false },
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
} else if (values.render) {
  publishRuns()
} else {
  console.log(`seed ${seed}`)
  if (chosen.length > 0) await run()
  if (oceans.length > 0) await runOcean()
}

async function runOcean(): Promise<void> {
  const where = measuredWhere()
  const startMs = performance.now()
  const results = await runOceans({
    scenarios: oceans,
    soakMs,
    random: new Random(seed),
    ran: (all) => {
      mkdirSync(values.out, { recursive: true })
      writeFileSync(join(values.out, 'ocean.json'), `${JSON.stringify({ seed, results: all }, undefined, 1)}\n`)
    },
  })
  if (values.save) {
    saveOcean({ where, seed, results }, soakMs === undefined ? undefined : minutesSince(startMs))
    publishRuns()
  }
  if (results.some(({ violations }) => violations.length > 0)) process.exitCode = 1
}

async function run(): Promise<void> {
  const random = new Random(seed)
  const results: ScenarioResult[] = []
  const endedMinutes: number[] = []
  const startMs = performance.now()
  const where = measuredWhere()
  await using lab = await Lab.start(nodes)
  console.log(`Prometheus: http://127.0.0.1:${lab.prometheusPort}`)
  const endMs = startMs + (soakMs ?? 0)
  for (let i = 0; soakMs === undefined ? i < chosen.length : performance.now() < endMs; i++) {
    const scenario = soakMs === undefined ? chosen[i] : random.pick(chosen)
    if (scenario === undefined) break
    const result = await runScenario(lab, scenario, rate, random.integer(0, 2 ** 31))
    results.push(result)
    endedMinutes.push(minutesSince(startMs))
    const { perSecond, p99Ms, over, allowedOver, violations } = result
    const at = soakMs === undefined ? `${i + 1} of ${chosen.length}` : `${endedMinutes.at(-1)} of ${soakMs / 60_000} min`
    console.log(
      `[${at}] ${scenario.name}: ${perSecond}/s, 99 % ${p99Ms} ms, ${over} over of ${allowedOver}; ${violations.join('; ') || 'invariants hold'}`,
    )
    write(results)
  }
  console.log(textReport(labReport(results, new Date())))
  if (values.save) {
    const setting = { where, seed, nodes, rate }
    if (soakMs === undefined) saveRun('lab', { ...setting, results })
    else
      saveRun('soak', {
        ...setting,
        minutes: minutesSince(startMs),
        results: results.map((each, i) => soakResult(each, endedMinutes[i] ?? 0)),
      })
    publishRuns()
  }
  if (results.some(({ violations }) => violations.length > 0)) process.exitCode = 1
}

function minutesSince(startMs: number): number {
  return Math.round((performance.now() - startMs) / 6_000) / 10
}

/** After each scenario: what fails later takes nothing back. */
function write(results: readonly ScenarioResult[]): void {
  mkdirSync(values.out, { recursive: true })
  writeFileSync(join(values.out, 'lab.html'), htmlReport(labReport(results, new Date())))
  writeFileSync(join(values.out, 'lab.json'), `${JSON.stringify({ seed, nodes, results }, undefined, 1)}\n`)
}
