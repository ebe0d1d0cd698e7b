import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import { ServiceProcess, SLUICEGATE, type TimedEffort } from './service-process.js'

const GENERATOR_CONNECTIONS = 16
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
    const loop = ['--closed', `${GENERATOR_CONNECTIONS}`, '--connections', `${GENERATOR_CONNECTIONS}`, '--duration', `${seconds}s`]
    const { perSecond, serviceMs } = await sluicegateLoad(url, ['--policy', 'api', '--keys', 'hot', ...loop])
    return { perSecond, p50Ms: serviceMs.p50 }
  }
  const http = (): Promise<GeneratorFigure> => own(`http://127.0.0.1:${service.httpPort}`)
  const take = ['SG.TAKE', 'api', 'key-1', '1']
  const generators: Readonly<Record<string, readonly [theirs: () => Promise<GeneratorFigure>, ours: () => Promise<GeneratorFigure>]>> = {
    wrk: [() => wrk(service.takeUrl, GENERATOR_CONNECTIONS, seconds), http],
    'h2load (HTTP/1.1)': [() => h2load(service.takeUrl, GENERATOR_CONNECTIONS, seconds), http],
    'redis-benchmark': [
      () => redisBenchmark(service.respPort, take, { connections: GENERATOR_CONNECTIONS, pipelined: 1, requests: REQUESTS, keys: 1 }),
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

const run = promisify(execFile)

/** What a generator of load reports of one run. */
export interface GeneratorFigure {
  readonly perSecond: number
  /** The median, or the mean where the generator prints no percentiles. */
  readonly p50Ms: number
}

/** wrk: HTTP/1.1, one thread. `script` makes its requests. */
export async function wrk(
  url: string,
  connections: number,
  seconds: number,
  script?: string,
): Promise<GeneratorFigure & { readonly requests: number }> {
  const scripted = script === undefined ? [] : ['-s', script]
  const { stdout } = await run('wrk', ['-t', '1', '-c', `${connections}`, '-d', `${seconds}s`, '--latency', ...scripted, url])
  const refused = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1]
  if (refused !== undefined) throw new Error(`${refused} responses of ${url} were errors`)
  return {
    perSecond: found(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1], stdout),
    p50Ms: milliseconds(/^\s+50%\s+(\S+)/m.exec(stdout)?.[1]),
    requests: found(/(\d+) requests in/.exec(stdout)?.[1], stdout),
  }
}

/** h2load over HTTP/1.1, one thread; it prints no percentiles. */
async function h2load(url: string, connections: number, seconds: number): Promise<GeneratorFigure> {
  const { stdout } = await run('h2load', ['--h1', '-c', `${connections}`, '-D', `${seconds}`, '-t', '1', url])
  const [, , , mean] = /^time for request:\s+(\S+)\s+(\S+)\s+(\S+)/m.exec(stdout) ?? []
  return { perSecond: found(/([\d.]+) req\/s/.exec(stdout)?.[1], stdout), p50Ms: milliseconds(mean) }
}

/** redis-benchmark; `__rand_int__` in the command stands for one of `keys` numbers. */
export async function redisBenchmark(
  port: number,
  command: readonly string[],
  { connections, pipelined, requests, keys }: { connections: number; pipelined: number; requests: number; keys: number },
): Promise<GeneratorFigure> {
  const options = ['-p', `${port}`, '-c', `${connections}`, '-P', `${pipelined}`, '-n', `${requests}`, '-r', `${keys}`, '--csv']
  const { stdout } = await run('redis-benchmark', [...options, ...command])
  // test, rps, and latencies: average, least, 50 %, ...
  const [, rate, , , p50] = (stdout.trim().split('\n').at(-1) ?? '').replaceAll('"', '').split(',')
  return { perSecond: found(rate, stdout), p50Ms: Number(p50) }
}

/** `sluicegate load` with these flags. */
export async function sluicegateLoad(url: string, flags: readonly string[]): Promise<LoadResult> {
  const { stdout } = await run(process.execPath, [SLUICEGATE, 'load', url, ...flags, '--json'], { maxBuffer: 2 ** 26 })
  return JSON.parse(stdout) as LoadResult
}

function found(text: string | undefined, output: string): number {
  if (text === undefined) throw new Error(`no figure in this output: ${output}`)
  return Number(text)
}

function milliseconds(text = ''): number {
  const [, number, unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
  return Number(number) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN)
}
