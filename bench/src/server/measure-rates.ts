import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { sluicegateLoad } from './generators.js'
import { cpuMs, startBare } from './measure-http.js'
import { COMPILED, ServiceProcess, SLUICEGATE, type TimedEffort } from './service-process.js'

/** Of the capacity. */
const SHARES = [0.1, 0.25, 0.5, 0.75, 0.9, 1, 1.5, 2, 3, 5] as const
export const PROTOCOLS = ['http', 'grpc', 'resp'] as const
export type Protocol = (typeof PROTOCOLS)[number]

/** Enough for the capacity, and so few that each waits a few milliseconds at most in the service. */
const CONNECTIONS = { http: 64, grpc: 4, resp: 16 } as const
/** Sent and not measured before each run; the processor time of the service has it. A generator is slow until it is compiled. */
const WARM_UP_S = 3
/** The share of the target, at which a bare server is measured, too. */
export const TARGET_SHARE = 0.5
/** Callers of the closed loop that finds the capacity. */
const CALLERS = 64

/** One run at a rate. */
export interface RateRun {
  readonly answeredPerSecond: number
  /** From the intended start. */
  readonly latencyMs: Readonly<Record<'p50' | 'p99' | 'p999', number>>
  readonly errors: number
  /** Processor time of the service for one answer, in microseconds. */
  readonly cpuUs: number
}

/** The behaviour of one protocol over the rate that is offered. */
export interface RateFigure {
  readonly protocol: Protocol
  /** Answers a second of a closed loop, one of each round. */
  readonly capacity: readonly number[]
  /** By share of the median capacity, one run of each round. */
  readonly points: readonly { readonly share: number; readonly runs: readonly RateRun[] }[]
  /** A bare node:http in the place of the service, at `TARGET_SHARE`; for HTTP only. */
  readonly bare?: readonly { readonly latencyMs: RateRun['latencyMs'] }[]
}

/** `sluicegate load` at a constant rate, from a tenth of the capacity to five times as much. */
export async function measureRates(protocol: Protocol, { rounds, seconds }: TimedEffort): Promise<RateFigure> {
  const service = await ServiceProcess.start()
  const hello = protocol === 'http' ? await startBare() : undefined
  try {
    const url = {
      http: `http://127.0.0.1:${service.httpPort}`,
      grpc: `grpc://127.0.0.1:${service.grpcPort}`,
      resp: `resp://127.0.0.1:${service.respPort}`,
    }[protocol]
    const common = ['--policy', 'api', '--connections', `${CONNECTIONS[protocol]}`]
    common.push('--warm-up', `${WARM_UP_S}s`, '--duration', `${seconds}s`)
    const capacity: number[] = []
    for (let round = 0; round <= rounds; round++) {
      const { perSecond } = await sluicegateLoad(url, [...common, '--closed', `${CALLERS}`])
      // The first run warms up the service.
      if (round > 0) capacity.push(perSecond)
    }
    const of = capacity.toSorted((a, b) => a - b)[capacity.length >> 1] as number
    const points = SHARES.map((share) => ({ share, runs: [] as RateRun[] }))
    const bare: { latencyMs: RateRun['latencyMs'] }[] = []
    for (let round = 0; round < rounds; round++) {
      if (hello !== undefined) {
        const { latencyMs } = await sluicegateLoad(hello.url, [...common, '--rate', `${Math.round(of * TARGET_SHARE)}`])
        bare.push({ latencyMs })
      }
      for (const { share, runs } of points) {
        const beforeMs = cpuMs(service.child)
        const flags = [...common, '--rate', `${Math.max(1, Math.round(of * share))}`, '--grace', '100ms']
        const { perSecond, seconds: length, latencyMs, errors } = await sluicegateLoad(url, flags)
        const cpuUs = ((cpuMs(service.child) - beforeMs) * 1_000) / Math.max(1, perSecond * (length + WARM_UP_S))
        runs.push({ answeredPerSecond: perSecond, latencyMs, errors, cpuUs })
      }
    }
    return { protocol, capacity, points, ...(hello && { bare }) }
  } finally {
    await hello?.stop()
    await service.stop()
  }
}

/** Milliseconds of each round, one after the other. */
export type StartupFigure = Awaited<ReturnType<typeof measureStartup>>[number]

/** How long `sluicegate serve` takes to listen, as it is published and as it is compiled, beside a Node.js that does nothing. */
export async function measureStartup({ rounds }: { readonly rounds: number }) {
  const figure = {
    /** From its start until the service accepts connections of all protocols. */
    serviceMs: [] as number[],
    /** The same of the program as tsc compiles it, one file a module. */
    compiledMs: [] as number[],
    /** From its start until `node -e 0` has ended. */
    nodeMs: [] as number[],
  }
  // The first round fills the caches of files.
  for (let round = 0; round <= rounds; round++) {
    const [node, service, compiled] = [await nodeTook(), await serviceTook(SLUICEGATE), await serviceTook(COMPILED)]
    if (round === 0) continue
    figure.nodeMs.push(node)
    figure.serviceMs.push(service)
    figure.compiledMs.push(compiled)
  }
  return [figure]
}

async function nodeTook(): Promise<number> {
  const startMs = performance.now()
  await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' }), 'exit')
  return performance.now() - startMs
}

async function serviceTook(program: string): Promise<number> {
  const service = await ServiceProcess.start([], program)
  const { startupMs } = service
  await service.stop()
  return startupMs
}
