import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { LineProcess } from '../line-process.js'
import { startNode } from '../measure.js'
import type { Load, LoadJob } from './load.js'
import { type MiddlewareSetting, SIDES, type Side, settingName, sideName } from './middleware-settings.js'
import { type Counted, checkedRun, forEachSide, type SettingRuns, type SideRun } from './side-runs.js'
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

const ADDED_SUBJECT = fileURLToPath(new URL('./added-subject.js', import.meta.url))

/** Processor time of a request, whole. */
export interface SideTime extends Counted {
  readonly ns: number
}

/** How often. */
export interface AddedEffort {
  /** How often each setting starts again: the compiler is not equally lucky each time. */
  readonly lives: number
  /** Repeats in each life. */
  readonly repeats: number
}

/** What requests take without a limiter and with each of both: in one process, in blocks of a few milliseconds in turn. */
export async function measureAdded(setting: MiddlewareSetting, { lives, repeats }: AddedEffort): Promise<SettingRuns<SideTime>> {
  const runs: SideRun<SideTime>[] = []
  for (let life = 0; life < lives; life++) {
    const process = await startNode(settingName(setting), ADDED_SUBJECT, setting)
    for (let repeat = 0; repeat < repeats; repeat++) runs.push(checkedRun(setting, (await process.ask('run')) as SideRun<SideTime>))
    await process.stop()
  }
  return { setting, runs }
}

const SUBJECT = fileURLToPath(new URL('./allocation-subject.js', import.meta.url))
/** A young generation in which a whole count fits, so that nothing is collected meanwhile. */
const FLAGS = ['--expose-gc', '--min-semi-space-size=128', '--max-semi-space-size=128']

/** Bytes of the heap that one request allocates. */
export interface SideBytes extends Counted {
  readonly bytes: number
}

/** What requests allocate without a limiter and with each of both; each run in a fresh process. */
export async function countAllocations(setting: MiddlewareSetting, times: number): Promise<SettingRuns<SideBytes>> {
  const runs: SideRun<SideBytes>[] = []
  for (let run = 0; run < times; run++) {
    const process = await startNode(settingName(setting), SUBJECT, setting, FLAGS)
    runs.push(checkedRun(setting, (await process.ask('run')) as SideRun<SideBytes>))
    await process.stop()
  }
  return { setting, runs }
}
