import { givenOptions, QUICK_RESULTS, RAW, writeResults } from './bench-command.js'
import { load, machine } from './machine.js'
import type { Effort } from './measure.js'
import type { Question } from './question.js'
import { algorithms, algorithmsManyKeys } from './questions/algorithms.js'
import { algorithmsMemory } from './questions/algorithms-memory.js'
import { algorithmsWorkers } from './questions/algorithms-workers.js'
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
const PER_ALGORITHM: readonly Question[] = [algorithms, algorithmsManyKeys, algorithmsMemory, algorithmsWorkers]
const ALL = [...JUDGED, ...SWEEPS, ...PER_ALGORITHM]
const FULL: Effort = { rounds: 12, lives: 3, repeatMs: 120, patienceMs: 0 }
const PATIENCE_MS = 40_000
const QUICK: Effort = { rounds: 7, lives: 1, repeatMs: 40, patienceMs: 0 }

const USAGE = `npm run bench -- [--only NAME]... [--quick] [--sweeps] [--algorithms] [--patient] [--json FILE]

  --only NAME   one question, may be given again: ${ALL.map(({ name }) => name).join(', ')}
  --quick       ${QUICK.rounds} short rounds instead of ${FULL.rounds} long ones: a first look, no figures to quote
  --sweeps      also what the plots are drawn from: ${SWEEPS.map(({ name }) => name).join(', ')}
  --algorithms  instead, those about each algorithm: ${PER_ALGORITHM.map(({ name }) => name).join(', ')}
  --patient     wait for quiet before each repeat, and throw away those that others disturbed
  --json FILE   where all samples go, with the machine and the verdicts; default bench/results/local/in-process.json of whole runs with
                --sweeps, algorithms.json of those with --algorithms, bench/results/local/quick/in-process.json of others`

const values = givenOptions(USAGE, {
  only: { type: 'string', multiple: true, default: [] },
  quick: { type: 'boolean', default: false },
  sweeps: { type: 'boolean', default: false },
  algorithms: { type: 'boolean', default: false },
  patient: { type: 'boolean', default: false },
  json: { type: 'string' },
})

await run(chosen())

function resultsFile(): string {
  const isWhole = values.only.length === 0 && !values.quick && (values.sweeps || values.algorithms)
  return isWhole ? `${RAW}${values.algorithms ? 'algorithms' : 'in-process'}.json` : `${QUICK_RESULTS}in-process.json`
}

function refuse(what: string): never {
  console.error(`${what}\n\n${USAGE}`)
  process.exit(2)
}

function chosen(): readonly Question[] {
  const unknown = values.only.filter((name) => !ALL.some((question) => question.name === name))
  if (unknown.length > 0) refuse(`no question ${unknown.join(', ')}`)
  if (values.only.length > 0) return ALL.filter(({ name }) => values.only.includes(name))
  if (values.algorithms) return PER_ALGORITHM
  return values.sweeps ? [...JUDGED, ...SWEEPS] : JUDGED
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
  const verdicts = answers.flatMap((answer) => answer.verdicts)
  if (verdicts.length > 0) console.log(verdictsText(verdicts))
  const results: Results = { ...about, loadBefore, loadAfter: load(), answers }
  writeResults(values.json ?? resultsFile(), results)
}
