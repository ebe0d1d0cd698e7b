import type { StudyTable } from './study-table.js'

/** Something to find out that no clock and no other program can disturb: the same figures on every machine. */
export interface Study<Findings = unknown> {
  find(options: { quick: boolean }): Findings
  tables(findings: Findings): readonly StudyTable[]
  plot(findings: Findings): string
  /** Of the plot, in docs/plots. */
  readonly plotName: string
}
