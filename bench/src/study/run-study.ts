import { printReport, RESULTS, writeResults } from '../bench-command.js'
import type { Study } from './study.js'

/** Prints what a study finds and writes it down: to `json`, or, unless it is a first look, to its place in bench/results. */
export function runStudy(name: string, study: Study, { quick, json }: { quick: boolean; json: string | undefined }): void {
  const findings = study.find({ quick })
  printReport(study.tables(findings), [])
  const file = json ?? (quick ? undefined : `${RESULTS}${name}-study.json`)
  if (file !== undefined) writeResults(file, findings as object)
}
