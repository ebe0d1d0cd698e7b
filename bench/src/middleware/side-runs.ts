import { type MiddlewareSetting, SIDES, type Side, sideName } from './middleware-setting.js'

/** How many requests were made, and how many of them passed. */
export interface Counted {
  readonly requests: number
  readonly allowed: number
}

/** What was found of each side at the same time. */
export type SideRun<Found extends Counted> = Readonly<Record<Side, Found>>

/** All runs of a setting. */
export interface SettingRuns<Found extends Counted> {
  readonly setting: MiddlewareSetting
  readonly runs: readonly SideRun<Found>[]
}

/** The run, unless a side answered otherwise than the setting says: that measured something else. */
export function checkedRun<Found extends Counted>({ framework, outcome }: MiddlewareSetting, run: SideRun<Found>): SideRun<Found> {
  for (const side of SIDES) {
    const { requests, allowed } = run[side]
    if (requests > 0 && allowed === (side === 'unlimited' || outcome === 'allow' ? requests : 0)) continue
    throw new Error(`${sideName(side, framework)}: ${allowed} of ${requests} requests were allowed, where all were to be: ${outcome}`)
  }
  return run
}

/** For each side what `of` makes of it. */
export async function forEachSide<Value>(of: (side: Side) => Promise<Value>): Promise<Record<Side, Value>> {
  return { unlimited: await of('unlimited'), sluicegate: await of('sluicegate'), rival: await of('rival') }
}
