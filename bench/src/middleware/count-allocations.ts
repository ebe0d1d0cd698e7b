import { fileURLToPath } from 'node:url'
import { startNode } from '../measure.js'
import { type MiddlewareSetting, settingName } from './middleware-settings.js'
import { type Counted, checkedRun, type SettingRuns, type SideRun } from './side-runs.js'

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
