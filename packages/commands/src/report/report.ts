/** A report as data: texts, tables and plots in order. It is printed as JSON, or drawn by {@link htmlReport} as one file. */
export interface Report {
  readonly title: string
  /** What was done with what: files, machine, date. */
  readonly subtitle: string
  readonly sections: readonly ReportSection[]
}

export interface ReportSection {
  readonly heading: string
  /** Paragraphs before the table or plot. */
  readonly text?: readonly string[]
  readonly table?: ReportTable
  readonly plot?: ReportPlot
}

export interface ReportTable {
  readonly columns: readonly string[]
  /** Numbers stand right. */
  readonly rows: readonly (readonly (string | number)[])[]
}

export interface ReportPlot {
  readonly x: 'time' | 'number'
  readonly xLabel: string
  readonly yLabel: string
  /** Unix seconds for `time`. */
  readonly xs: readonly number[]
  readonly series: readonly ReportSeries[]
  /** Moments to mark, such as faults. */
  readonly marks?: readonly ReportMark[]
  readonly logX?: boolean
  readonly logY?: boolean
}

export interface ReportSeries {
  readonly label: string
  readonly ys: readonly (number | null)[]
  readonly kind?: 'line' | 'area' | 'dashed'
}

export interface ReportMark {
  readonly fromX: number
  readonly toX: number
  readonly label: string
}
