// node bench/dist/draw.js RESULTS.json FOLDER: the plots of a run with --sweeps.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Chart, chartSvg, type Line } from './chart.js'
import type { Machine } from './machine.js'
import type { Measurement } from './measure.js'
import { type Answer, of } from './question.js'
import { KEY_COUNTS, SWEPT, sweepName, WORKER_COUNTS, workersName } from './questions/sweeps.js'

interface Results {
  readonly machine: Machine
  readonly answers: readonly (Answer & { readonly question: string })[]
}

const COLORS = ['#2f81f7', '#1b9e8f', '#8b949e', '#d4712a', '#c2437e']

const [file, folder] = process.argv.slice(2)
if (file === undefined || folder === undefined) {
  console.error('usage: node bench/dist/draw.js RESULTS.json FOLDER')
  process.exit(2)
}
const results = JSON.parse(readFileSync(file, 'utf8')) as Results
mkdirSync(folder, { recursive: true })
writeFileSync(join(folder, 'over-keys.svg'), chartSvg(overKeys(results)))
writeFileSync(join(folder, 'over-workers.svg'), chartSvg(overWorkers(results)))

function overKeys(results: Results): Chart {
  const measurements = measurementsOf(results, 'keys-sweep')
  const lines = SWEPT.map((contender, index): Line => {
    const points = KEY_COUNTS.map((keys) => {
      const { ns } = of(measurements, sweepName(contender, keys))
      return { x: keys.toLocaleString('en'), y: ns.median, low: ns.lowerQuartile, high: ns.upperQuartile }
    })
    return { name: contender, color: COLORS[index] as string, points }
  })
  const title = 'Nanoseconds a decision over the number of keys'
  const subtitle = `Keys in random order, one thread, median and quartiles. ${where(results)}`
  return { title, subtitle, xName: 'keys', yName: 'ns a decision', yScale: 'log', lines }
}

function overWorkers(results: Results): Chart {
  const measurements = measurementsOf(results, 'workers-sweep')
  const kinds = [
    ['lock-free', 'compare-and-swap (Sluicegate)'],
    ['mutex', 'the same under a mutex (Atomics.wait)'],
  ] as const
  const lines = kinds.map(([store, name], index): Line => {
    const points = WORKER_COUNTS.map((workers) => {
      const { ns } = of(measurements, workersName(store, workers))
      return { x: String(workers), y: 1e3 / ns.median, low: 1e3 / ns.upperQuartile, high: 1e3 / ns.lowerQuartile }
    })
    return { name, color: COLORS[index * 3] as string, points }
  })
  const title = 'Decisions a second on one hot key'
  const subtitle = `All workers together, bound key, coarse clock. ${where(results)}`
  return { title, subtitle, xName: 'worker threads', yName: 'million a second', yScale: 'value', lines }
}

function measurementsOf({ answers }: Results, question: string): readonly Measurement[] {
  const found = answers.find((answer) => answer.question === question)
  if (found === undefined) throw new Error(`no ${question} in these results: run the benchmarks with --sweeps`)
  return found.measurements
}

function where({ machine }: Results): string {
  return `${machine.cpu}, ${machine.cores} cores, Node ${machine.node.split(' ')[0]}`
}
