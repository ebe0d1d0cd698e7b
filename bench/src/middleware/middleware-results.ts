import type { Machine } from '../machine.js'
import type { Verdict } from '../question.js'
import { type Summary, summaryOf } from '../samples.js'
import type { SideBytes } from './count-allocations.js'
import type { AddedEffort, SideTime } from './measure-added.js'
import type { SideLoad, SocketEffort } from './measure-sockets.js'
import { isSameSetting, type MiddlewareSetting, type Side, settingName } from './middleware-settings.js'
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

/** A figure of one side in one run. */
type Figure<Found> = (found: Found) => number

/** Of a side, over all runs. */
export function figureOf<Found extends Counted>(runs: readonly SideRun<Found>[], side: Side, figure: Figure<Found>): Summary {
  return summaryOf(runs.map((run) => figure(run[side])))
}

/** What a side adds to the app without a limiter, run by run. */
export function addedBy<Found extends Counted>(runs: readonly SideRun<Found>[], side: Side, figure: Figure<Found>): Summary {
  return summaryOf(runs.map((run) => figure(run[side]) - figure(run.unlimited)))
}

/** What ours adds over what the rival adds, run by run. */
export function addedRatio<Found extends Counted>(runs: readonly SideRun<Found>[], figure: Figure<Found>): Summary {
  return summaryOf(
    runs.map(({ unlimited, sluicegate, rival }) => (figure(sluicegate) - figure(unlimited)) / (figure(rival) - figure(unlimited))),
  )
}

/** One side over another, run by run. */
export function ratioOf<Found extends Counted>(runs: readonly SideRun<Found>[], over: Side, under: Side, figure: Figure<Found>): Summary {
  return summaryOf(runs.map((run) => figure(run[over]) / figure(run[under])))
}

const JUDGED: readonly MiddlewareSetting[] = (['same', 'defaults'] as const).flatMap((options) =>
  (['one', 'many'] as const).map((clients): MiddlewareSetting => ({ framework: 'express', options, outcome: 'allow', clients })),
)

/** The targets, each by the median of ratios within a run, as far as they were measured. */
export function middlewareVerdicts({ added }: MiddlewareResults): Verdict[] {
  return JUDGED.flatMap((setting): Verdict[] => {
    const runs = runsOf(added, setting)
    if (runs.length === 0) return []
    const measured = addedRatio(runs, ({ ns }) => ns)
    const what = `Express, time added, of that of express-rate-limit, ${settingName(setting)}`
    return [{ what, target: '<= 1/3', measured, unit: 'x', met: measured.median <= 1 / 3 }]
  })
}
