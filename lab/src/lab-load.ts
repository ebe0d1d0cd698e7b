import type { LoadResult } from 'sluicegate-commands/load/load-result.js'
import type { ReportMark } from 'sluicegate-commands/report/report.js'
import { LabProcess } from './lab-process.js'
import type { AdmittedOverTime } from './recovery.js'
import type { FaultMarker } from './scenarios.js'
import { type ServiceNode, SLUICEGATE } from './service-node.js'

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

export type LoadCounts = Pick<LoadResult, 'sent' | 'allowed' | 'denied' | 'errors' | 'unanswered' | 'errorTexts'>

/** Of all results together. */
export function countsOf(results: readonly LoadResult[]): LoadCounts {
  const sum = (of: Exclude<keyof LoadCounts, 'errorTexts'>): number => results.reduce((all, each) => all + each[of], 0)
  return {
    sent: sum('sent'),
    allowed: sum('allowed'),
    denied: sum('denied'),
    errors: sum('errors'),
    unanswered: sum('unanswered'),
    errorTexts: Object.assign({}, ...results.map(({ errorTexts }) => errorTexts)),
  }
}

/** The machine's monotonic clock, which all processes share. */
export function machineUs(): number {
  return Number(process.hrtime.bigint() / 1_000n)
}

export function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000
}

const SAMPLE_MS = 500

/** Runs a scenario while the counters of its nodes are read, marks the times of its faults in seconds, and stops the load also when it fails. */
export async function marked(
  nodes: readonly ServiceNode[],
  run: (fault: FaultMarker) => Promise<void>,
  stop: () => Promise<unknown>,
): Promise<{ startUs: number; marks: ReportMark[] }> {
  const startUs = machineUs()
  const sinceS = (): number => (machineUs() - startUs) / 1_000_000
  const sampling = setInterval(() => void sampled(nodes), SAMPLE_MS)
  const marks: ReportMark[] = []
  try {
    await run(async (label, fault) => {
      const fromX = sinceS()
      await fault()
      marks.push({ fromX, toX: sinceS(), label })
    })
  } finally {
    clearInterval(sampling)
    await stop()
  }
  return { startUs, marks }
}

/** Reads the counters of all nodes. */
export async function sampled(nodes: readonly ServiceNode[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.sample()))
}
