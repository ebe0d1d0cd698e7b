import { fileURLToPath } from 'node:url'
import { startNode } from '../measure.js'
import { type MiddlewareSetting, settingName } from './middleware-settings.js'
import { type Counted, checkedRun, type SettingRuns, type SideRun } from './side-runs.js'

const SUBJECT = fileURLToPath(new URL('./added-subject.js', import.meta.url))

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
    const process = await startNode(settingName(setting), SUBJECT, setting)
    for (let repeat = 0; repeat < repeats; repeat++) runs.push(checkedRun(setting, (await process.ask('run')) as SideRun<SideTime>))
    await process.stop()
  }
  return { setting, runs }
}
