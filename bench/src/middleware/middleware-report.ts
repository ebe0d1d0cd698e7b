import { ratioOf, type Summary, summaryOf } from 'sluicegate-testkit/samples.js'
import { type Chart, chartSvg, type Line, measuredOn, pointOf } from '../chart.js'
import type { Machine } from '../machine.js'
import { type Claim, claim, claimsTable, machineTable, type Report } from '../report.js'
import { figure, minuteOf, type Table, tableOf, withSpread } from '../table.js'
import type { AddedEffort, SideBytes, SideLoad, SideTime, SocketEffort } from './measure-sides.js'
import { FRAMEWORKS, isSameSetting, type MiddlewareSetting, RIVALS, type Side, settingName } from './middleware-settings.js'
import type { Counted, SettingRuns, SideRun } from './side-runs.js'

const ns = (found: SideTime): number => found.ns
const bytes = (found: SideBytes): number => found.bytes
const perS = ({ requests, elapsedMs }: SideLoad): number => (requests / elapsedMs) * 1000
const serverUs = ({ requests, cpuUs }: SideLoad): number => cpuUs / requests

/** What a run says: of a request that passes what each side adds to the app, of one that is denied all, as it never comes to the handler. */
export function middlewareReport(results: MiddlewareResults): Report {
  const { startedAt, rivals, effort, added, allocations, sockets } = results
  const versions = (names: readonly string[]): string => names.map((name) => `${name} ${rivals[name]}`).join(', ')
  const rows = {
    frameworks: versions([...FRAMEWORKS, '@hono/node-server']),
    rivals: versions(FRAMEWORKS.map((framework) => RIVALS[framework])),
    run:
      `${minuteOf(startedAt)}; without sockets ${effort.added.repeats} repeats in each of ${effort.added.lives} processes; ` +
      `allocations in ${effort.allocationRuns} processes each; over sockets ${effort.sockets.runs} runs of ${effort.sockets.ms} ms`,
  }
  const socketTitle = 'Over loopback, 32 connections kept alive'
  return {
    pages: ['benchmarks-edge.md'],
    tables: [
      machineTable('middleware-machine', results, rows),
      claimsTable('middleware-targets', claimsOf(added)),
      sideTable('middleware-added', 'ns', added, ns),
      sideTable('middleware-allocations', 'bytes of heap', allocations, bytes),
      tableOf({ name: 'middleware-sockets', title: socketTitle, offPage: ODD }, sockets, {
        '': nameOf,
        'requests/s, no limit': ({ runs }) => figure(figureOf(runs, 'unlimited', perS).median),
        sluicegate: ({ runs }) => figure(figureOf(runs, 'sluicegate', perS).median),
        rival: ({ runs }) => figure(figureOf(runs, 'rival', perS).median),
        'sluicegate adds, µs': ({ runs }) => withSpread(addedBy(runs, 'sluicegate', serverUs)),
        'rival adds, µs': ({ runs }) => withSpread(addedBy(runs, 'rival', serverUs)),
      }),
    ],
    plots: {
      'middleware-allow': () => chartSvg(chartOf(results, 'allow', 'Added to a request that passes')),
      'middleware-deny': () => chartSvg(chartOf(results, 'deny', 'A request that is denied, whole')),
    },
  }
}

/** Pages have the most used settings of all frameworks: those with the same headers on both sides, and of Express all. */
const ODD = { columns: [], rows: ([name = '']: readonly string[]) => !name.startsWith('express:') && /defaults|mapped|IPv6/.test(name) }

function nameOf({ setting }: { readonly setting: MiddlewareSetting }): string {
  return `${setting.framework}: ${settingName(setting)}`
}

/** What both sides take, requests that pass first; the spread is that of the ratio. */
function sideTable<Found extends Counted>(name: string, unit: string, all: readonly SettingRuns<Found>[], of: Figure<Found>): Table {
  const rows = (['allow', 'deny'] as const).flatMap((outcome) => all.filter(({ setting }) => setting.outcome === outcome))
  return tableOf({ name, offPage: ODD }, rows, {
    [unit]: nameOf,
    sluicegate: (row) => figure(summaryOf(costsOf(row, 'sluicegate', of)).median),
    rival: (row) => figure(summaryOf(costsOf(row, 'rival', of)).median),
    ratio: (row) => withSpread(ratioOf(costsOf(row, 'sluicegate', of), costsOf(row, 'rival', of))),
    'the app': ({ runs }) => figure(figureOf(runs, 'unlimited', of).median),
  })
}

/** What a side adds to the app without a limiter, or all that a denial takes, run by run. */
function costsOf<Found extends Counted>({ setting, runs }: SettingRuns<Found>, side: Side, of: Figure<Found>): number[] {
  return runs.map((run) => of(run[side]) - (setting.outcome === 'allow' ? of(run.unlimited) : 0))
}

const NS_PER_US = 1_000

/** By framework. */
function chartOf({ added, machine, startedAt }: MiddlewareResults, outcome: MiddlewareSetting['outcome'], title: string): Chart {
  const line = (side: Side): Line => ({
    name: side === 'rival' ? 'the usual limiter of the framework' : 'Sluicegate',
    points: FRAMEWORKS.flatMap((framework) => {
      const setting: MiddlewareSetting = { framework, options: 'same', outcome, clients: 'one' }
      const found = added.find((each) => isSameSetting(each.setting, setting))
      return found === undefined ? [] : [pointOf(framework, summaryOf(costsOf(found, side, ns)), (value) => value / NS_PER_US)]
    }),
  })
  return {
    title,
    subtitle: `One IPv4 address, same headers, median and quartiles. ${measuredOn(machine, startedAt)}`,
    xName: FRAMEWORKS.map((framework) => `${framework}: ${RIVALS[framework]}`).join(', '),
    yName: 'µs',
    yScale: 'value',
    hasNoLines: true,
    lines: [line('sluicegate'), line('rival')],
  }
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

/** A figure of one side in one run. */
type Figure<Found> = (found: Found) => number

/** Of a side, over all runs. */
function figureOf<Found extends Counted>(runs: readonly SideRun<Found>[], side: Side, figure: Figure<Found>): Summary {
  return summaryOf(runs.map((run) => figure(run[side])))
}

/** What a side adds to the app without a limiter, run by run. */
function addedBy<Found extends Counted>(runs: readonly SideRun<Found>[], side: Side, figure: Figure<Found>): Summary {
  return summaryOf(runs.map((run) => figure(run[side]) - figure(run.unlimited)))
}

/** The targets, each by the median of ratios within a run, as far as they were measured. */
function claimsOf(added: MiddlewareResults['added']): Claim[] {
  const judged = (['same', 'defaults'] as const).flatMap((options) =>
    (['one', 'many'] as const).map((clients): MiddlewareSetting => ({ framework: 'express', options, outcome: 'allow', clients })),
  )
  return judged.flatMap((setting) =>
    added
      .filter((each) => isSameSetting(each.setting, setting))
      .map((row) => {
        const ratio = ratioOf(costsOf(row, 'sluicegate', ns), costsOf(row, 'rival', ns))
        return claim(`Express, time added, of that of express-rate-limit, ${settingName(setting)}`, ratio, '<= 1/3')
      }),
  )
}
