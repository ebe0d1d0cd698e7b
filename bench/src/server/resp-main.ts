import { parseArgs } from 'node:util'
import { load, machine } from '../machine.js'
import { measureResp, type RespFigure } from './measure-resp.js'

// `node bench/dist/server/resp-main.js [--rounds 7] [--requests 400000]`: redis-benchmark against the service and against redis-server, in
// alternating runs. Ratios are those of the medians; the range is that of the pairs of one round.

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' }, requests: { type: 'string', default: '400000' } } })

const { cpu, cores, node } = machine()
console.log(`${cpu}, ${cores} cores, Node ${node}; load before: ${load()}\n`)
const figures = await measureResp({ rounds: Number(values.rounds), requests: Number(values.requests) })
console.log(tableOf(figures))
console.log(`\nload after: ${load()}`)

function tableOf(rows: readonly RespFigure[]): string {
  const head = ['pipelined', 'CL.THROTTLE', 'Redis, SET', 'Redis, the decision in Lua', 'times SET', 'times Lua']
  const lines = rows.map(({ pipelined, throttle, set, script }) => [
    `${pipelined}`,
    ...[throttle, set, script].map((rps) => thousands(median(rps))),
    ratio(throttle, set),
    ratio(throttle, script),
  ])
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function ratio(ours: readonly number[], theirs: readonly number[]): string {
  const pairs = ours.map((rps, i) => rps / (theirs[i] as number)).toSorted((a, b) => a - b)
  return `${(median(ours) / median(theirs)).toFixed(2)} (${pairs.at(0)?.toFixed(2)} to ${pairs.at(-1)?.toFixed(2)})`
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] as number
}

function thousands(rps: number): string {
  return `${Math.round(rps / 1000)},000 /s`
}
