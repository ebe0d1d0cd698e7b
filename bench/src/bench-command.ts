import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { type Table, tableText } from './markdown.js'
import type { Verdict } from './question.js'
import { verdictsText } from './report.js'

/** The folder of the results that are committed, and within it that of the raw ones, which are not. `npm run plots` makes those of these. */
export const RESULTS = fileURLToPath(new URL('../results/', import.meta.url))
export const RAW = `${RESULTS}local/`
/** What is no figure to quote. */
export const QUICK_RESULTS = `${RAW}quick/`

/** The options of the command line. `--help` prints the usage and ends the program. */
export function givenOptions<const Options extends NonNullable<ParseArgsConfig['options']>>(
  usage: string,
  options: Options,
): ReturnType<typeof parseArgs<{ options: Options }>>['values'] {
  if (process.argv.includes('--help')) {
    console.log(usage)
    process.exit()
  }
  return parseArgs({ options }).values
}

/** Servers end when this process exits, and it would not by itself when it is ended. */
export function exitOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
}

export function printReport(tables: readonly Table[], verdicts: readonly Verdict[]): void {
  for (const table of tables) console.log(tableText(table))
  if (verdicts.length > 0) console.log(verdictsText(verdicts))
}

export function writeResults(file: string, results: object): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(results)}\n`)
  console.log(`\nwritten to ${file}`)
}
