import type { ReportMark } from 'sluicegate-commands/report/report.js'
import { machineUs } from './lab-load.js'
import type { FaultMarker } from './scenarios.js'
import type { ServiceNode } from './service-node.js'

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
