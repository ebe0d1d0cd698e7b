import { mkdirSync, writeFileSync } from 'node:fs'
import { oneEachLine } from '../markdown-tables.js'
import { checkModel, type Defines, LARGE_CHECKS, MODEL_FAULTS, SMALL_CHECKS, type SpinResult } from './spin.js'

// The Spin model of the table in all its configurations, and the faults that Spin has to find. Needs up to 4 GiB of memory.

const RESULTS = new URL('../../results/', import.meta.url)

interface Row extends SpinResult {
  readonly name: string
  readonly defines: Defines
}

const checks: Row[] = []
for (const { name, defines } of [...SMALL_CHECKS, ...LARGE_CHECKS]) {
  const result = await checkModel(defines)
  checks.push({ name, defines, ...result })
  const found = result.error ?? (result.complete ? 'no error' : 'not complete')
  console.log(`${found}: ${name} (${result.states} states, ${result.seconds.toFixed(0)} s)`)
}
const faults: Row[] = []
for (const { fault, defines } of MODEL_FAULTS) {
  const result = await checkModel({ ...defines, [`FAULT_${fault}`]: 1 })
  faults.push({ name: fault, defines, ...result })
  console.log(`${result.error === undefined ? 'NOT FOUND' : 'found'}: ${fault} (${result.states} states)`)
}

mkdirSync(RESULTS, { recursive: true })
const rounded = (row: Row): object => ({ ...row, seconds: Math.round(row.seconds) })
writeFileSync(
  new URL('model.json', RESULTS),
  oneEachLine({ command: 'npm run prove:model', checks: checks.map(rounded), faults: faults.map(rounded) }),
)
if (checks.some(({ complete }) => !complete) || faults.some(({ error }) => error === undefined)) process.exitCode = 1
