import { parseArgs } from 'node:util'
import { load, machine } from '../machine.js'
import { type GrpcRun, measureGrpc } from './measure-grpc.js'

// `node bench/dist/server/grpc-main.js [--rounds 7] [--calls 40000]`: ShouldRateLimit of the service against a bare server of gRPC's own library, in
// alternating runs. Ratios are those of the medians; the range is that of the pairs of one round.

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '7' }, calls: { type: 'string', default: '40000' } } })

const { cpu, cores, node } = machine()
console.log(`${cpu}, ${cores} cores, Node ${node}; load before: ${load()}\n`)
console.log(
  '| calls at a time | service | bare grpc-js echo | ratio of calls | processor time of a call | ratio of it |\n| --- | --- | --- | --- | --- | --- |',
)
for (const outstanding of [1, 16, 64]) {
  const { service, echo } = await measureGrpc({ rounds: Number(values.rounds), calls: Number(values.calls), outstanding })
  const calls = (run: GrpcRun): number => run.callsPerSecond
  const time = (run: GrpcRun): number => run.cpuUs
  const cells = [
    `${4 * outstanding}`,
    `${Math.round(median(service.map(calls)))} /s`,
    `${Math.round(median(echo.map(calls)))} /s`,
    ratio(service.map(calls), echo.map(calls)),
    `${median(service.map(time)).toFixed(0)} and ${median(echo.map(time)).toFixed(0)} µs`,
    ratio(service.map(time), echo.map(time)),
  ]
  console.log(`| ${cells.join(' | ')} |`)
}
console.log(`\nload after: ${load()}`)

function ratio(ours: readonly number[], theirs: readonly number[]): string {
  const pairs = ours.map((one, i) => one / (theirs[i] as number)).toSorted((a, b) => a - b)
  return `${(median(ours) / median(theirs)).toFixed(2)} (${pairs.at(0)?.toFixed(2)} to ${pairs.at(-1)?.toFixed(2)})`
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[sorted.length >> 1] as number
}
