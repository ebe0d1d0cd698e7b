import type { Table } from '../markdown.js'
import { figure, spread, whole } from '../report.js'
import type { Summary } from '../samples.js'
import type { SideBytes } from './count-allocations.js'
import type { SideTime } from './measure-added.js'
import type { SideLoad } from './measure-sockets.js'
import { addedBy, addedRatio, figureOf, type MiddlewareResults, ratioOf, runsOf } from './middleware-results.js'
import {
  addedSettings,
  allocationSettings,
  FRAMEWORKS,
  type Framework,
  type MiddlewareSetting,
  RIVALS,
  SIDES,
  settingName,
  socketSettings,
} from './middleware-settings.js'

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
