import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LineProcess } from '../line-process.js'
import { startNode } from '../measure.js'
import type { Load, LoadJob } from './load.js'
import { type MiddlewareSetting, SIDES, type Side, sideName } from './middleware-settings.js'
import { checkedRun, forEachSide, type SettingRuns, type SideRun } from './side-runs.js'
import type { SiteJob } from './site-subject.js'

const SITE = fileURLToPath(new URL('./site-subject.js', import.meta.url))
const LOAD = fileURLToPath(new URL('./load-subject.js', import.meta.url))
const CONNECTIONS = 32
const SETTLE_MS = 100

/** A server under as much as it can answer. */
export interface SideLoad extends Load {
  /** Processor time of the server, microseconds. */
  readonly cpuUs: number
}

/** How long and how often. */
export interface SocketEffort {
  readonly runs: number
  readonly ms: number
  readonly warmUpMs: number
}

interface Site {
  readonly process: LineProcess
  readonly port: number
}

/**
 * Servers without a limiter and with each of both, each in its own process, in turn; one more process asks them all. Every other
 * round goes backwards.
 */
export async function measureSockets(setting: MiddlewareSetting, effort: SocketEffort): Promise<SettingRuns<SideLoad>> {
  const { framework, options, outcome, clients } = setting
  const processes: LineProcess[] = []
  const started = async (what: string, script: string, argument: SiteJob | null): Promise<LineProcess> => {
    const process = await startNode(what, script, argument)
    processes.push(process)
    return process
  }
  try {
    const asker = await started('load', LOAD, null)
    const asked = (side: Side, ms: number): Promise<SideLoad> => oneLoad(asker, sites[side], setting, ms)
    const sites = await forEachSide(async (side): Promise<Site> => {
      const plan = { side, options, outcome, behindProxy: clients === 'many' }
      const process = await started(sideName(side, framework), SITE, { framework, plan })
      return { process, port: (await process.ask('port')) as number }
    })
    await forEachSide((side) => asked(side, effort.warmUpMs))
    const runs: SideRun<SideLoad>[] = []
    for (let round = 0; round < effort.runs; round++) {
      const found: Partial<Record<Side, SideLoad>> = {}
      for (const side of round % 2 === 0 ? SIDES : SIDES.toReversed()) found[side] = await asked(side, effort.ms)
      runs.push(checkedRun(setting, found as SideRun<SideLoad>))
    }
    return { setting, runs }
  } finally {
    await Promise.all(processes.map((process) => process.stop()))
  }
}

async function oneLoad(asker: LineProcess, { process, port }: Site, { clients }: MiddlewareSetting, ms: number): Promise<SideLoad> {
  await sleep(SETTLE_MS)
  const before = (await process.ask('cpu')) as number
  const job: LoadJob = { port, ms, connections: CONNECTIONS, manyClients: clients === 'many' }
  const load = (await asker.ask(JSON.stringify(job))) as Load
  return { ...load, cpuUs: ((await process.ask('cpu')) as number) - before }
}
