import { readFileSync } from 'node:fs'
import { exitOnSignals, givenOptions, QUICK_RESULTS, RAW } from '../committed-form.js'
import { load, machine } from '../machine.js'
import { chosenNames } from '../question.js'
import { printReport, writeResults } from '../report.js'
import { measureGenerators } from './generators.js'
import { measureGrpc, measureResp } from './measure-grpc.js'
import { measureHttp } from './measure-http.js'
import { measureNginx } from './measure-nginx.js'
import { measureRates, measureStartup, type RateFigure } from './measure-rates.js'
import { measureTurns } from './measure-turns.js'
import {
  type GrpcFigure,
  merged,
  PARTS,
  protocolOf,
  type ServerEffort,
  type ServerPart,
  type ServerResults,
  serverReport,
} from './server-report.js'

/** On each of four connections. */
const OUTSTANDING = [1, 16, 64] as const

const FULL: ServerEffort = {
  http: { rounds: 5, seconds: 3 },
  nginx: { rounds: 7, seconds: 3 },
  grpc: { rounds: 7, calls: 40_000 },
  resp: { rounds: 7, requests: 400_000 },
  rates: { rounds: 3, seconds: 3 },
  generators: { rounds: 5, seconds: 2 },
  startup: { rounds: 15 },
  turns: { pairs: 5, seconds: 2, policies: 1_000 },
}
/** A fifth of everything. */
const QUICK = JSON.parse(JSON.stringify(FULL), (name, value) =>
  typeof value === 'number' && name !== 'policies' ? Math.ceil(value / 5) : value,
) as ServerEffort

const USAGE = `npm run bench:server -- [--quick] [--part PART]... [--merge] [--json FILE]

  --quick      short runs: a first look, no figures to quote
  --part PART  one of them, may be given again: ${PARTS.join(', ')}
  --merge      put the parts into the results of the last whole run, where the other parts stay as they are
  --json FILE  where all samples go; default bench/results/local/server.json of a whole run, bench/results/local/quick/server.json of others

  http         takes against bare node:http servers, by wrk; with one process and with two
  nginx        /v1/auth behind auth_request of nginx, with 1,000 clients
  grpc         ShouldRateLimit against an echo of grpc-js
  resp         CL.THROTTLE against redis-server (SET, and the same decision in Lua), by redis-benchmark
  rates-http, rates-grpc, rates-resp
               from 10 % to 500 % of the capacity, as an open loop
  generators   sluicegate load beside wrk, h2load and redis-benchmark
  startup      from the start of the service until it listens, beside node -e 0
  turns        takes beside reloads of 1,000 policies, of a file of Envoy, of a million keys, scrapes, calls with 128 descriptors and quota streams`

const values = givenOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  part: { type: 'string', multiple: true, default: [] },
  merge: { type: 'boolean', default: false },
  json: { type: 'string' },
})

exitOnSignals()

await run()

async function run(): Promise<void> {
  const parts = chosenNames<ServerPart>('part', values.part, PARTS, USAGE)
  const isWhole = !values.quick && (parts === PARTS || values.merge)
  const file = values.json ?? `${isWhole ? RAW : QUICK_RESULTS}server.json`
  const effort = values.quick ? QUICK : FULL
  const about = { kind: 'server', startedAt: new Date().toISOString(), machine: machine(), effort, loadBefore: load() } as const
  const http = await part(parts, 'http', () => measureHttp(effort.http))
  const nginx = await part(parts, 'nginx', () => measureNginx(effort.nginx))
  const grpc = await part(parts, 'grpc', () => eachDepth(effort))
  const resp = await part(parts, 'resp', () => measureResp(effort.resp))
  const rates: RateFigure[] = []
  for (const name of PARTS) {
    const protocol = protocolOf(name)
    if (protocol !== undefined) rates.push(...(await part(parts, name, async () => [await measureRates(protocol, effort.rates)])))
  }
  const generators = await part(parts, 'generators', () => measureGenerators(effort.generators))
  const startup = await part(parts, 'startup', () => measureStartup(effort.startup))
  const turns = await part(parts, 'turns', () => measureTurns(effort.turns))
  const results: ServerResults = { ...about, loadAfter: load(), http, nginx, grpc, resp, rates, generators, startup, turns }
  printReport(serverReport(results))
  const kept = values.merge && !values.quick ? merged(JSON.parse(readFileSync(file, 'utf8')), results, parts) : results
  writeResults(file, kept)
}

async function part<Figure>(parts: readonly ServerPart[], name: ServerPart, measure: () => Promise<Figure[]>): Promise<Figure[]> {
  if (!parts.includes(name)) return []
  console.error(`${name} ...`)
  return measure()
}

async function eachDepth(effort: ServerEffort): Promise<GrpcFigure[]> {
  const figures: GrpcFigure[] = []
  for (const outstanding of OUTSTANDING)
    figures.push({ outstanding: 4 * outstanding, ...(await measureGrpc({ ...effort.grpc, outstanding })) })
  return figures
}
