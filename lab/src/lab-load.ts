import { LabProcess } from './lab-process.js'
import { SLUICEGATE } from './service-node.js'

/** Enough for the rate while decisions take as long as a busy machine makes them: fewer make requests wait in the load itself. */
const CONNECTIONS = 256

/** Sends requests through the balancer until it is stopped, and records each answer. */
export function loadOn(port: number, policy: string, record: string, requests: readonly string[]): LabProcess {
  return new LabProcess(process.execPath, [
    SLUICEGATE,
    'load',
    `http://127.0.0.1:${port}`,
    ...['--policy', policy, '--json', '--record', record, '--duration', '10m', '--connections', String(CONNECTIONS), ...requests],
  ])
}

/** The machine's monotonic clock, which all processes share. */
export function machineUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
