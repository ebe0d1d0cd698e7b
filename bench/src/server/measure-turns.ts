import { writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { until } from 'sluicegate-testkit'
import { summaryOf } from 'sluicegate-testkit/samples.js'
import { QuotaClient } from 'sluicegate-testkit/service/quota-client.js'
import { GrpcTestClient } from 'sluicegate-testkit/service/simulated-envoy.js'
import { call, RULES, requestFrame } from './measure-grpc.js'
import { ServiceProcess, SLUICEGATE } from './service-process.js'

/** What takes wait, and how long the service holds its event loop, while something large goes on beside them. */
export interface TurnFigure {
  readonly beside: string
  /** Of takes, one every {@link EACH_MS}, from the time at which each was meant to start. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly longestMs: number
  /** The longest time between two turns of the service. */
  readonly heldMs: number
  /** The p99 beside it by that beside nothing just before, of each pair. Beside `nothing` they show what chance does. */
  readonly p99Times: readonly number[]
}

/** `policies` stand in the configuration, `seconds` is how long takes are measured, twice in a pair. */
export type TurnEffort = Readonly<Record<'pairs' | 'seconds' | 'policies', number>>

/** What a window of takes shows. */
type Latencies = Pick<TurnFigure, 'p50Ms' | 'p99Ms' | 'longestMs'>

const EACH_MS = 4
const DESCRIPTORS = 128
const CALLS = 64
const STREAMS = 16
const BUCKETS = 3_000
const ENVOY_LIMITS = 2_000
const TIER_ROWS = 1_000_000
const AFTER_MS = 500
const [CONFIG_FILE, RULES_FILE, TIER_FILE] = ['service.yaml', 'rules.yaml', 'tenants.csv']

/** Within the service: on SIGUSR2 it prints the longest time between two turns since the last one. */
const METER = `data:text/javascript,${encodeURIComponent(`
import { writeSync } from 'node:fs'
let last = performance.now(), longest = 0
setInterval(() => { const now = performance.now(); longest = Math.max(longest, now - last - 1); last = now }, 1).unref()
process.on('SIGUSR2', () => { writeSync(1, 'held ' + longest + '\\n'); longest = 0 })`)}`

if (!isMainThread) serveWindows(workerData as { url: string; seconds: number })

/** Takes beside nothing, then beside each of the others, in pairs: what else the machine does has its part in both. */
export async function measureTurns({ pairs, seconds, policies }: TurnEffort): Promise<TurnFigure[]> {
  const config = configOf(policies, 0)
  const files = { [RULES_FILE]: rulesOf(0), [TIER_FILE]: tiersOf(0) }
  const service = await ServiceProcess.start([], SLUICEGATE, { config, files, ofNode: ['--import', METER] })
  const probe = new Worker(fileURLToPath(import.meta.url), { workerData: { url: service.takeUrl, seconds } })
  const figures: TurnFigure[] = []
  try {
    await window(probe)
    for (const [beside, load] of loadsOf(service, policies)) {
      const windows: (readonly [quiet: Latencies, busy: Latencies])[] = []
      let heldMs = 0
      for (let pair = 0; pair < pairs; pair++) {
        const quiet = await window(probe)
        await heldBy(service)
        const over = new AbortController()
        const going = load(over.signal)
        windows.push([quiet, await window(probe)])
        heldMs = Math.max(heldMs, await heldBy(service))
        over.abort()
        await going
        // What it leaves behind belongs to no window.
        await sleep(AFTER_MS)
      }
      figures.push({ beside, ...figureOf(windows), heldMs })
    }
  } finally {
    await probe.terminate()
    await service.stop()
  }
  return figures
}

function figureOf(windows: readonly (readonly [quiet: Latencies, busy: Latencies])[]): Omit<TurnFigure, 'beside' | 'heldMs'> {
  const busy = windows.map(([, each]) => each)
  return {
    p50Ms: summaryOf(busy.map(({ p50Ms }) => p50Ms)).median,
    p99Ms: summaryOf(busy.map(({ p99Ms }) => p99Ms)).median,
    longestMs: Math.max(...busy.map(({ longestMs }) => longestMs)),
    p99Times: windows.map(([quiet, { p99Ms }]) => p99Ms / quiet.p99Ms),
  }
}

/** Takes of so many seconds. */
function window(probe: Worker): Promise<Latencies> {
  return new Promise((resolve, reject) => {
    probe.once('error', reject)
    probe.once('message', (latencies: Latencies) => {
      probe.off('error', reject)
      resolve(latencies)
    })
    probe.postMessage('go')
  })
}

type Load = (signal: AbortSignal) => Promise<void>

function loadsOf(service: ServiceProcess, policies: number): readonly (readonly [beside: string, load: Load])[] {
  let version = 0
  const reload = async (file: string, text: string, ms = 400): Promise<void> => {
    writeFileSync(join(service.folder, file), text)
    service.child.kill('SIGHUP')
    await sleep(ms)
  }
  const grpc = `http://127.0.0.1:${service.grpcPort}`
  const again =
    (step: () => Promise<unknown>): Load =>
    async (signal) => {
      while (!signal.aborted) await step()
    }
  const calls: Load = async (signal) => {
    const session = connect(grpc)
    let nth = 0
    const loop = again(() => call(session, requestFrame(...Array.from({ length: DESCRIPTORS }, () => `${nth++}`))))
    await Promise.all(Array.from({ length: CALLS }, () => loop(signal)))
    session.destroy()
  }
  const streams: Load = again(async () => {
    const client = new GrpcTestClient(grpc)
    const planes = Array.from({ length: STREAMS }, () => new QuotaClient(client))
    for (const [i, plane] of planes.entries()) {
      plane.report(
        '',
        ...Array.from({ length: BUCKETS }, (_, j) => ({ bucket: { name: 'api', user: `${i} ${j} ${version}` }, allowed: 1 })),
      )
    }
    version++
    await sleep(1_000)
    for (const plane of planes) plane.cancel()
    client[Symbol.dispose]()
  })
  return [
    ['nothing', () => Promise.resolve()],
    [`reloads of ${policies} policies, one of them changed`, again(() => reload(CONFIG_FILE, configOf(policies, ++version)))],
    [`reloads of a file of Envoy with ${ENVOY_LIMITS} limits`, again(() => reload(RULES_FILE, rulesOf(++version)))],
    [`reloads of a data file of ${TIER_ROWS} keys`, again(() => reload(TIER_FILE, tiersOf(++version), 2_000))],
    [`reloads of ${policies} policies by merge keys`, again(() => reload(CONFIG_FILE, configOf(policies, ++version, true)))],
    ['scrapes of /metrics, back to back', again(() => fetched(`http://127.0.0.1:${service.httpPort}/metrics`))],
    [`ShouldRateLimit with ${DESCRIPTORS} descriptors, ${CALLS} calls at a time`, calls],
    [`RLQS, ${STREAMS} streams of ${BUCKETS} new buckets each`, streams],
  ]
}

function configOf(policies: number, version: number, isMerged = false): string {
  const own = (i: number): string => (i === 0 ? `${1_000_000 + version}` : '1000000')
  const numbers = (i: number): string =>
    isMerged ? `{ <<: *api, limit: ${own(i)} }` : `{ algorithm: token-bucket, limit: ${own(i)}, window: 1s }`
  const lines = Array.from({ length: policies - 2 }, (_, i) => `  p${i}: ${numbers(i)}\n`)
  const tiers = `tiers: { small: { limit: 10 }, large: { limit: 20 } }, tier-file: ${TIER_FILE}`
  return [
    'policies:\n  api: &api { algorithm: token-bucket, limit: 10000000, window: 1s }\n',
    ...lines,
    `  tenants: { algorithm: token-bucket, limit: 5, window: 1m, ${tiers} }\nlog: { level: silent }\n`,
  ].join('')
}

function rulesOf(version: number): string {
  const own = Array.from({ length: ENVOY_LIMITS }, (_, i) => {
    const perUnit = i === 0 ? 1_000_000 + version : 1_000_000
    return `  - { key: path, value: '/${i}', rate_limit: { unit: second, requests_per_unit: ${perUnit} } }\n`
  })
  return `${RULES}${own.join('')}`
}

function tiersOf(version: number): string {
  return `key,tier\n${Array.from({ length: TIER_ROWS }, (_, i) => `k${i},${i === version ? 'large' : 'small'}\n`).join('')}`
}

async function heldBy({ child }: ServiceProcess): Promise<number> {
  let printed = ''
  const read = (bytes: Buffer): void => {
    printed += bytes
  }
  child.stdout?.on('data', read)
  child.kill('SIGUSR2')
  await until('the service prints how long it was held', () => /held [\d.]+\n/.test(printed))
  child.stdout?.off('data', read)
  return Number(/held ([\d.]+)/.exec(printed)?.[1])
}

function fetched(url: string, agent?: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, agent === undefined ? {} : { agent }, (response) => response.resume().once('end', () => resolve(response.statusCode))).once(
      'error',
      reject,
    )
  })
}

/** In a thread of its own, so that it is not held by what goes on beside it. */
function serveWindows({ url, seconds }: { readonly url: string; readonly seconds: number }): void {
  const agent = new Agent({ keepAlive: true })
  parentPort?.on('message', async () => parentPort?.postMessage(await probed(url, seconds, agent)))
}

async function probed(url: string, seconds: number, agent: Agent): Promise<Latencies> {
  const latencies: number[] = []
  const startMs = performance.now()
  const under: Promise<void>[] = []
  for (let nth = 0; nth * EACH_MS < seconds * 1_000; nth++) {
    const dueMs = startMs + nth * EACH_MS
    await sleep(Math.max(0, dueMs - performance.now()))
    under.push(
      fetched(url, agent).then((status) => {
        if (status !== 200) throw new Error(`a take was answered with ${status}`)
        latencies.push(performance.now() - dueMs)
      }),
    )
  }
  await Promise.all(under)
  latencies.sort((a, b) => a - b)
  const at = (share: number): number => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] as number
  return { p50Ms: at(0.5), p99Ms: at(0.99), longestMs: at(1) }
}
