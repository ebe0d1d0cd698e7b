import type { Machine } from '../machine.js'
import type { Table } from '../markdown.js'
import type { Verdict } from '../question.js'
import { figure, spread, whole } from '../report.js'
import { type Summary, summaryOf } from '../samples.js'
import type { AddedEffort, SideBytes, SideLoad, SideTime, SocketEffort } from './measure-sides.js'
import {
  addedSettings,
  allocationSettings,
  FRAMEWORKS,
  type Framework,
  isSameSetting,
  type MiddlewareSetting,
  RIVALS,
  SIDES,
  type Side,
  settingName,
  socketSettings,
} from './middleware-settings.js'
import type { Counted, SettingRuns, SideRun } from './side-runs.js'

const ns = (found: SideTime): number => found.ns
const bytes = (found: SideBytes): number => found.bytes
const perS = ({ requests, elapsedMs }: SideLoad): number => (requests / elapsedMs) * 1000
const serverUs = ({ requests, cpuUs }: SideLoad): number => cpuUs / requests

/** Every table of a run, by the name of its place in the page. What was not measured is left out. */
export function middlewareTables(results: MiddlewareResults): Table[] {
  const of = (table: (results: MiddlewareResults, framework: Framework) => Table): Table[] =>
    FRAMEWORKS.map((framework) => table(results, framework))
  return [...of(allowedTable), ...of(deniedTable), allocationTable(results), socketTable(results)].filter(({ rows }) => rows.length > 0)
}

/** What is added to a request that passes. */
function allowedTable({ added }: MiddlewareResults, framework: Framework): Table {
  const rows = settingsOf(framework, 'allow').flatMap((setting) => {
    const runs = runsOf(added, setting)
    if (runs.length === 0) return []
    const sides = [addedBy(runs, 'sluicegate', ns), addedBy(runs, 'rival', ns), addedRatio(runs, ns)]
    return [[settingName(setting), ...sides.flatMap(medianAndSpread), figure(figureOf(runs, 'unlimited', ns).median)]]
  })
  const head = ['', ...heads('sluicegate', RIVALS[framework], 'ratio'), 'the app alone']
  return { name: `middleware-${framework}-allow`, title: `${framework}: added to a request that passes, ns`, head, rows }
}

/** A request that is denied, whole: it never comes to the handler, so that there is nothing to add it to. */
function deniedTable({ added }: MiddlewareResults, framework: Framework): Table {
  const rows = settingsOf(framework, 'deny').flatMap((setting) => {
    const runs = runsOf(added, setting)
    if (runs.length === 0) return []
    const sides = [figureOf(runs, 'sluicegate', ns), figureOf(runs, 'rival', ns), ratioOf(runs, 'sluicegate', 'rival', ns)]
    return [[settingName(setting), ...sides.flatMap(medianAndSpread), figure(figureOf(runs, 'unlimited', ns).median)]]
  })
  const head = ['', ...heads('sluicegate', RIVALS[framework], 'ratio'), 'the app that answers']
  return { name: `middleware-${framework}-deny`, title: `${framework}: a request that is denied, whole, ns`, head, rows }
}

function allocationTable({ allocations }: MiddlewareResults): Table {
  const rows = allocationSettings().flatMap((setting) => {
    const runs = runsOf(allocations, setting)
    if (runs.length === 0) return []
    const alone = figureOf(runs, 'unlimited', bytes)
    // A denial is not added to anything, as above.
    const sides =
      setting.outcome === 'allow'
        ? [addedBy(runs, 'sluicegate', bytes), addedBy(runs, 'rival', bytes), addedRatio(runs, bytes)]
        : [figureOf(runs, 'sluicegate', bytes), figureOf(runs, 'rival', bytes), ratioOf(runs, 'sluicegate', 'rival', bytes)]
    const [ours, theirs, ratio] = sides as [Summary, Summary, Summary]
    const what = `${setting.framework}: ${settingName(setting)}${setting.outcome === 'allow' ? '' : ', whole'}`
    return [[what, whole(ours.median), range(ours), whole(theirs.median), range(theirs), figure(ratio.median), whole(alone.median)]]
  })
  const head = ['', 'sluicegate', 'min..max', 'rival', 'min..max', 'ratio', 'the app alone']
  return { name: 'middleware-allocations', title: 'Allocated by a request, bytes of heap: what is added; of a denial all', head, rows }
}

/** Requests a second over sockets, and processor time that each side adds for one. */
function socketTable({ sockets }: MiddlewareResults): Table {
  const rows = socketSettings(FRAMEWORKS).flatMap((setting) => {
    const runs = runsOf(sockets, setting)
    if (runs.length === 0) return []
    const perSecond = SIDES.map((side) => figure(figureOf(runs, side, perS).median))
    const added = (['sluicegate', 'rival'] as const).flatMap((side) => medianAndSpread(addedBy(runs, side, serverUs)))
    return [[`${setting.framework}: ${settingName(setting)}`, ...perSecond, ...added]]
  })
  const head = [
    '',
    ...SIDES.map((side) => (side === 'unlimited' ? 'requests/s, no limit' : side)),
    ...heads('sluicegate adds, µs', 'rival adds, µs'),
  ]
  return { name: 'middleware-sockets', title: 'Over loopback, 32 connections kept alive', head, rows }
}

function settingsOf(framework: Framework, outcome: MiddlewareSetting['outcome']): MiddlewareSetting[] {
  return addedSettings([framework]).filter((setting) => setting.outcome === outcome)
}

function heads(...of: readonly string[]): string[] {
  return of.flatMap((each) => [each, 'quartiles'])
}

function medianAndSpread(summary: Summary): string[] {
  return [figure(summary.median), spread(summary)]
}

function range({ min, max }: Summary): string {
  return `${whole(min)}..${whole(max)}`
}

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
function addedRatio<Found extends Counted>(runs: readonly SideRun<Found>[], figure: Figure<Found>): Summary {
  return summaryOf(
    runs.map(({ unlimited, sluicegate, rival }) => (figure(sluicegate) - figure(unlimited)) / (figure(rival) - figure(unlimited))),
  )
}

/** One side over another, run by run. */
function ratioOf<Found extends Counted>(runs: readonly SideRun<Found>[], over: Side, under: Side, figure: Figure<Found>): Summary {
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
