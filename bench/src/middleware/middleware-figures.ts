import { type Summary, summaryOf } from '../samples.js'
import type { Side } from './middleware-setting.js'
import type { Counted, SideRun } from './side-runs.js'

/** A figure of one side in one run. */
export type Figure<Found> = (found: Found) => number

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
