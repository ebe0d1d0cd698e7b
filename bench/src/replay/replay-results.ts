/** Rounds of one log, read by `wc -l` and by `sluicegate replay` in turn. */
export interface ReplayFigure {
  readonly log: string
  readonly megabytes: number
  readonly linesPerSecond: readonly number[]
  readonly wcLinesPerSecond: readonly number[]
  /** The most memory that the command held. */
  readonly peakMegabytes: number
}

/** What `npm run bench:replay` found. */
export interface ReplayResults {
  readonly kind: 'replay'
  readonly where: string
  readonly lines: number
  readonly figures: readonly ReplayFigure[]
}
