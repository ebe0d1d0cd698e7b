import type { AdmittedOverTime } from './admissions.js'
import { LabProcess } from './lab-process.js'
import { SLUICEGATE } from './service-node.js'

/** Enough for the rate while decisions take as long as a busy machine makes them: fewer make requests wait in the load itself. */
const CONNECTIONS = 256
const BIN_MS = 250

/** Sends requests through the balancer until it is stopped, and records each answer. */
export function loadOn(port: number, policy: string, record: string, requests: readonly string[]): LabProcess {
  return new LabProcess(process.execPath, [
    SLUICEGATE,
    'load',
    `http://127.0.0.1:${port}`,
    ...['--policy', policy, '--json', '--record', record, '--duration', '10m', '--connections', String(CONNECTIONS), ...requests],
  ])
}

/** What was admitted a second, from a start on. */
export function admittedOverTime(
  answers: readonly { readonly toUs: number; readonly outcome: string }[],
  startUs: number,
  seconds: number,
): AdmittedOverTime {
  const bins = Math.max(1, Math.floor((seconds * 1_000) / BIN_MS))
  const admitted = Array<number>(bins).fill(0)
  for (const { toUs, outcome } of answers) {
    const bin = Math.floor((toUs - startUs) / 1_000 / BIN_MS)
    if (outcome === 'allowed' && bin >= 0 && bin < bins) admitted[bin] = (admitted[bin] as number) + 1_000 / BIN_MS
  }
  return { xs: admitted.map((_, i) => (i * BIN_MS) / 1_000), admitted }
}

/** The machine's monotonic clock, which all processes share. */
export function machineUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}
