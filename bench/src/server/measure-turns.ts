import { writeFileSync } from 'node:fs'
import { Agent, get } from 'node:http'
import { connect } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { until } from 'sluicegate-testkit'
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
}

/** `policies` stand in the configuration. */
export type TurnEffort = Readonly<Record<'seconds' | 'policies', number>>

const EACH_MS = 4
const DESCRIPTORS = 128
const CALLS = 64
const STREAMS = 16
const BUCKETS = 3_000

/** Within the service: on SIGUSR2 it prints the longest time between two turns since the last one. */
const METER = `data:text/javascript,${encodeURIComponent(`
import { writeSync } from 'node:fs'
let last = performance.now(), longest = 0
setInterval(() => { const now = performance.now(); longest = Math.max(longest, now - last - 1); last = now }, 1).unref()
process.on('SIGUSR2', () => { writeSync(1, 'held ' + longest + '\\n'); longest = 0 })`)}`

if (!isMainThread) await probed(workerData as { url: string; seconds: number })

/** Takes beside quiet, then beside each of the others. */
export async function measureTurns({ seconds, policies }: TurnEffort): Promise<TurnFigure[]> {
  const config = configOf(policies, 0)
  const service = await ServiceProcess.start([], SLUICEGATE, { config, rules: RULES, ofNode: ['--import', METER] })
  const figures: TurnFigure[] = []
  try {
    for (const [beside, load] of loadsOf(service, policies)) {
      const over = new AbortController()
      await heldBy(service)
      const probe = new Worker(fileURLToPath(import.meta.url), { workerData: { url: service.takeUrl, seconds } })
      const answer = new Promise<Omit<TurnFigure, 'beside' | 'heldMs'>>((resolve, reject) =>
        probe.once('message', resolve).once('error', reject),
      )
      const going = load(over.signal)
      const latencies = await answer
      over.abort()
      await going
      figures.push({ beside, ...latencies, heldMs: await heldBy(service) })
    }
  } finally {
    await service.stop()
  }
  return figures
}

type Load = (signal: AbortSignal) => Promise<void>

function loadsOf(service: ServiceProcess, policies: number): readonly (readonly [beside: string, load: Load])[] {
  let version = 0
  const reload = async (text: string): Promise<void> => {
    writeFileSync(service.file, text)
    service.child.kill('SIGHUP')
    await sleep(400)
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
    [`reloads of ${policies} policies, one of them changed`, again(() => reload(configOf(policies, ++version)))],
    [`reloads of ${policies} policies by merge keys`, again(() => reload(configOf(policies, ++version, true)))],
    ['scrapes of /metrics, back to back', again(() => fetched(`http://127.0.0.1:${service.httpPort}/metrics`))],
    [`ShouldRateLimit with ${DESCRIPTORS} descriptors, ${CALLS} calls at a time`, calls],
    [`RLQS, ${STREAMS} streams of ${BUCKETS} new buckets each`, streams],
  ]
}

function configOf(policies: number, version: number, isMerged = false): string {
  const own = (i: number): string => (i === 0 ? `${1_000_000 + version}` : '1000000')
  const numbers = (i: number): string =>
    isMerged ? `{ <<: *api, limit: ${own(i)} }` : `{ algorithm: token-bucket, limit: ${own(i)}, window: 1s }`
  const lines = Array.from({ length: policies - 1 }, (_, i) => `  p${i}: ${numbers(i)}\n`)
  return `policies:\n  api: &api { algorithm: token-bucket, limit: 10000000, window: 1s }\n${lines.join('')}log: { level: silent }\n`
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
async function probed({ url, seconds }: { readonly url: string; readonly seconds: number }): Promise<void> {
  const agent = new Agent({ keepAlive: true })
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
  agent.destroy()
  latencies.sort((a, b) => a - b)
  const at = (share: number): number => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] as number
  parentPort?.postMessage({ p50Ms: at(0.5), p99Ms: at(0.99), longestMs: at(1) })
}
