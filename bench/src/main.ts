import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { parseArgs } from 'node:util'
import { load, machine } from './machine.js'
import type { Effort } from './measure.js'
import type { Question } from './question.js'
import { boundKey } from './questions/bound-key.js'
import { denial } from './questions/denial.js'
import { hotKey } from './questions/hot-key.js'
import { hundredThousandKeys, millionKeys } from './questions/many-keys.js'
import { memory } from './questions/memory.js'
import { oneKey } from './questions/one-key.js'
import { keysSweep, workersSweep } from './questions/sweeps.js'
import { answerText, verdictsText } from './report.js'
import type { Results } from './results.js'
import { installRivals, rivalVersions } from './rivals.js'

const JUDGED: readonly Question[] = [boundKey, oneKey, hundredThousandKeys, millionKeys, denial, memory, hotKey]
const SWEEPS: readonly Question[] = [keysSweep, workersSweep]
const FULL: Effort = { rounds: 12, lives: 3, repeatMs: 120, patienceMs: 0 }
const PATIENCE_MS = 40_000
const QUICK: Effort = { rounds: 7, lives: 1, repeatMs: 40, patienceMs: 0 }

const USAGE = `npm run bench -- [--only NAME]... [--quick] [--sweeps] [--patient] [--json FILE]

  --only NAME   one question, may be given again: ${[...JUDGED, ...SWEEPS].map(({ name }) => name).join(', ')}
  --quick       ${QUICK.rounds} short rounds instead of ${FULL.rounds} long ones: a first look, no figures to quote
  --sweeps      also what the plots are drawn from: ${SWEEPS.map(({ name }) => name).join(', ')}
  --patient     wait for quiet before each repeat, and throw away those that others disturbed
  --json FILE   write all samples, the machine and the verdicts`

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    quick: { type: 'boolean', default: false },
    sweeps: { type: 'boolean', default: false },
    patient: { type: 'boolean', default: false },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(USAGE)
else await run(chosen())

function chosen(): readonly Question[] {
  const all = [...JUDGED, ...SWEEPS]
  const unknown = values.only.filter((name) => !all.some((question) => question.name === name))
  if (unknown.length > 0) {
    console.error(`no question ${unknown.join(', ')}\n\n${USAGE}`)
    process.exit(2)
  }
  if (values.only.length > 0) return all.filter(({ name }) => values.only.includes(name))
  return values.sweeps ? all : JUDGED
}

async function run(questions: readonly Question[]): Promise<void> {
  installRivals()
  const effort: Effort = { ...(values.quick ? QUICK : FULL), patienceMs: values.patient ? PATIENCE_MS : 0 }
  const about = { startedAt: new Date().toISOString(), machine: machine(), rivals: rivalVersions(), effort }
  const loadBefore = load()
  console.log(`${about.machine.cpu}, ${about.machine.cores} cores, ${about.machine.os}, Node ${about.machine.node}, load ${loadBefore}\n`)
  const answers: Results['answers'][number][] = []
  for (const question of questions) {
    for (const answer of await question.ask(effort)) {
      answers.push({ question: question.name, ...answer })
      console.log(answerText(answer))
    }
  }
  console.log(verdictsText(answers.flatMap(({ verdicts }) => verdicts)))
  if (values.json === undefined) return
  mkdirSync(dirname(values.json), { recursive: true })
  const results: Results = { ...about, loadBefore, loadAfter: load(), answers }
  writeFileSync(values.json, `${JSON.stringify(results, null, 1)}\n`)
  console.log(`\nwritten to ${values.json}`)
}
