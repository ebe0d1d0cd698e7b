import { execFile } from 'node:child_process'
import { parseArgs, promisify } from 'node:util'
import { load, machine } from '../machine.js'
import { LOAD_CONFIG, ServiceProcess, SLUICEGATE } from './service-process.js'

// `node bench/dist/server/load-main.js [--rounds 3] [--seconds 2]`: `sluicegate load` beside wrk, h2load and redis-benchmark, as closed loops of the
// same 16 connections against the same service, in alternating runs. The ratio is that of the medians.

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, seconds: { type: 'string', default: '2' } } })
const run = promisify(execFile)
const CONNECTIONS = '16'
const REQUESTS = '20000'

/** One run of a generator. */
interface Figure {
  readonly perSecond: number
  readonly p50Ms: number
}

const service = await ServiceProcess.start(LOAD_CONFIG)
const path = `http://127.0.0.1:${service.httpPort}/v1/take?policy=api&key=key-1`
const generators: Readonly<Record<string, readonly [rival: () => Promise<Figure>, own: () => Promise<Figure>]>> = {
  wrk: [wrk, () => own(`http://127.0.0.1:${service.httpPort}`)],
  'h2load (HTTP/1.1)': [h2load, () => own(`http://127.0.0.1:${service.httpPort}`)],
  'redis-benchmark': [redisBenchmark, () => own(`resp://127.0.0.1:${service.respPort}`)],
}

const { cpu, cores, node } = machine()
console.log(`${cpu}, ${cores} cores, Node ${node}; load before: ${load()}\n`)
console.log('| beside | its requests/s | load | ratio | its 50 %, ms | load |\n| --- | --- | --- | --- | --- | --- |')
try {
  for (const [name, [rival, mine]] of Object.entries(generators)) {
    const [theirs, ours]: [Figure[], Figure[]] = [[], []]
    for (let round = 0; round < Number(values.rounds); round++) {
      theirs.push(await rival())
      ours.push(await mine())
    }
    const rate = [theirs, ours].map((figures) => median(figures.map(({ perSecond }) => perSecond))) as [number, number]
    const p50 = [theirs, ours].map((figures) => median(figures.map(({ p50Ms }) => p50Ms))) as [number, number]
    const cells = [name, rate[0].toFixed(0), rate[1].toFixed(0), (rate[1] / rate[0]).toFixed(2), p50[0].toFixed(2), p50[1].toFixed(2)]
    console.log(`| ${cells.join(' | ')} |`)
  }
} finally {
  await service.stop()
}
console.log(`\nload after: ${load()}`)

async function own(url: string): Promise<Figure> {
  const flags = [
    '--policy',
    'api',
    '--keys',
    'hot',
    '--closed',
    CONNECTIONS,
    '--connections',
    CONNECTIONS,
    '--duration',
    `${values.seconds}s`,
  ]
  const { stdout } = await run(process.execPath, [SLUICEGATE, 'load', url, ...flags, '--json'])
  const { perSecond, serviceMs } = JSON.parse(stdout) as { perSecond: number; serviceMs: { p50: number } }
  return { perSecond, p50Ms: serviceMs.p50 }
}

async function wrk(): Promise<Figure> {
  const { stdout } = await run('wrk', ['-t', '1', '-c', CONNECTIONS, '-d', `${values.seconds}s`, '--latency', path])
  return { perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]), p50Ms: msIn(/^\s+50%\s+(\S+)/m.exec(stdout)?.[1]) }
}

async function h2load(): Promise<Figure> {
  const { stdout } = await run('h2load', ['--h1', '-c', CONNECTIONS, '-D', values.seconds, '-t', '1', path])
  // It prints no percentiles; its mean stands in their place.
  const [, , , mean] = /^time for request:\s+(\S+)\s+(\S+)\s+(\S+)/m.exec(stdout) ?? []
  return { perSecond: Number(/([\d.]+) req\/s/.exec(stdout)?.[1]), p50Ms: msIn(mean) }
}

async function redisBenchmark(): Promise<Figure> {
  const command = ['SG.TAKE', 'api', 'key-1', '1']
  const { stdout } = await run('redis-benchmark', ['-p', `${service.respPort}`, '-c', CONNECTIONS, '-n', REQUESTS, '--csv', ...command])
  // test, rps, and latencies: average, least, 50 %, ...
  const [, rate, , , p50] = (stdout.trim().split('\n').at(-1) ?? '').replaceAll('"', '').split(',')
  return { perSecond: Number(rate), p50Ms: Number(p50) }
}

function msIn(text = ''): number {
  const [, number, unit = ''] = /^([\d.]+)(us|ms|s)$/.exec(text) ?? []
  return Number(number) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN)
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] as number
}
