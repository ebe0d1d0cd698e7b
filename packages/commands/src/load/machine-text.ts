import { availableParallelism, cpus, loadavg } from 'node:os'

/** The machine and how busy it is, such as `Xeon, 2 cores, Node v20.20.2, load average 0.4`. */
export function machineText(): string {
  const model = cpus()[0]?.model.trim() ?? 'unknown processor'
  return `${model}, ${availableParallelism()} cores, Node ${process.version}, load average ${(loadavg()[0] ?? 0).toFixed(1)}`
}

/** The same with the day, as it stands under a table. */
export function measuredWhere(): string {
  return `${machineText()}, ${new Date().toISOString().slice(0, 10)}`
}
