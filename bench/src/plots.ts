import type { Chart, Line } from './chart.js'
import { COLORS } from './drawing.js'
import type { Measurement } from './measure.js'
import { of } from './question.js'
import { KEY_COUNTS, SWEPT, sweepName, WORKER_COUNTS, workersName } from './questions/sweeps.js'
import type { Results } from './results.js'

/** Nanoseconds a decision over the number of keys. */
export function overKeys(results: Results): Chart {
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

/** Decisions a second over the number of worker threads. */
export function overWorkers(results: Results): Chart {
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

function where({ machine, startedAt }: Results): string {
  return `${machine.cpu}, ${machine.cores} cores, Node ${machine.node.split(' ')[0]}, ${startedAt.slice(0, 10)}`
}
