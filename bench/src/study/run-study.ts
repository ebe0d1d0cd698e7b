import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Study } from './study.js'
import { tableText } from './study-table.js'

const RESULTS = fileURLToPath(new URL('../../results/', import.meta.url))

/** Prints what a study finds and writes it down: to `json`, or, unless it is a first look, to its place in bench/results. */
export function runStudy(name: string, study: Study, { quick, json }: { quick: boolean; json: string | undefined }): void {
  const findings = study.find({ quick })
  for (const table of study.tables(findings)) console.log(tableText(table))
  const file = json ?? (quick ? undefined : `${RESULTS}${name}-study.json`)
  if (file === undefined) return
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(findings)}\n`)
  console.log(`written to ${file}`)
}
