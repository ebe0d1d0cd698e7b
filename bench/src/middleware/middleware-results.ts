import type { Machine } from '../machine.js'
import type { SideBytes } from './count-allocations.js'
import type { AddedEffort, SideTime } from './measure-added.js'
import type { SideLoad, SocketEffort } from './measure-sockets.js'
import { isSameSetting, type MiddlewareSetting } from './middleware-setting.js'
import type { Counted, SettingRuns, SideRun } from './side-runs.js'

/** How long and how often each of the three is measured. */
export interface MiddlewareEffort {
  readonly added: AddedEffort
  readonly allocationRuns: number
  readonly sockets: SocketEffort
}

/** What a run of the middleware benchmarks found, and where: what tables and verdicts are made from. */
export interface MiddlewareResults {
  readonly kind: 'middleware'
  readonly startedAt: string
  readonly machine: Machine
  readonly rivals: Readonly<Record<string, string>>
  readonly effort: MiddlewareEffort
  readonly loadBefore: number
  readonly loadAfter: number
  readonly added: readonly SettingRuns<SideTime>[]
  readonly allocations: readonly SettingRuns<SideBytes>[]
  readonly sockets: readonly SettingRuns<SideLoad>[]
}

/** The runs of a setting; none when it was not measured. */
export function runsOf<Found extends Counted>(
  results: readonly SettingRuns<Found>[],
  setting: MiddlewareSetting,
): readonly SideRun<Found>[] {
  return results.find((result) => isSameSetting(result.setting, setting))?.runs ?? []
}
