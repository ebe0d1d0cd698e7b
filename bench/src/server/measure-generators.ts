import { type GeneratorFigure, h2load, redisBenchmark, sluicegateLoad, wrk } from './generators.js'
import type { TimedEffort } from './server-run.js'
import { ServiceProcess } from './service-process.js'

const CONNECTIONS = 16
const REQUESTS = 20_000

/** `sluicegate load` beside another generator, one after the other in each round. */
export interface GeneratorPair {
  readonly beside: string
  readonly theirs: readonly GeneratorFigure[]
  readonly ours: readonly GeneratorFigure[]
}

/** Closed loops of the same 16 connections against the same service. */
export async function measureGenerators({ rounds, seconds }: TimedEffort): Promise<GeneratorPair[]> {
  const service = await ServiceProcess.start()
  const own = async (url: string): Promise<GeneratorFigure> => {
    const loop = ['--closed', `${CONNECTIONS}`, '--connections', `${CONNECTIONS}`, '--duration', `${seconds}s`]
    const { perSecond, serviceMs } = await sluicegateLoad(url, ['--policy', 'api', '--keys', 'hot', ...loop])
    return { perSecond, p50Ms: serviceMs.p50 }
  }
  const http = (): Promise<GeneratorFigure> => own(`http://127.0.0.1:${service.httpPort}`)
  const take = ['SG.TAKE', 'api', 'key-1', '1']
  const generators: Readonly<Record<string, readonly [theirs: () => Promise<GeneratorFigure>, ours: () => Promise<GeneratorFigure>]>> = {
    wrk: [() => wrk(service.takeUrl, CONNECTIONS, seconds), http],
    'h2load (HTTP/1.1)': [() => h2load(service.takeUrl, CONNECTIONS, seconds), http],
    'redis-benchmark': [
      () => redisBenchmark(service.respPort, take, { connections: CONNECTIONS, pipelined: 1, requests: REQUESTS, keys: 1 }),
      () => own(`resp://127.0.0.1:${service.respPort}`),
    ],
  }
  try {
    const pairs: GeneratorPair[] = []
    for (const [beside, [rival, mine]] of Object.entries(generators)) {
      const [theirs, ours]: [GeneratorFigure[], GeneratorFigure[]] = [[], []]
      for (let round = 0; round < rounds; round++) {
        theirs.push(await rival())
        ours.push(await mine())
      }
      pairs.push({ beside, theirs, ours })
    }
    return pairs
  } finally {
    await service.stop()
  }
}
