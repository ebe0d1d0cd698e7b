import { givenOptions, QUICK_RESULTS, RAW } from '../committed-form.js'
import { load, machine } from '../machine.js'
import { chosenNames } from '../question.js'
import { printReport, writeResults } from '../report.js'
import { installRivals, rivalVersions } from '../rivals.js'
import { countAllocations, measureAdded, measureSockets } from './measure-sides.js'
import { type MiddlewareEffort, type MiddlewareResults, middlewareReport } from './middleware-report.js'
import {
  addedSettings,
  allocationSettings,
  FRAMEWORKS,
  type Framework,
  type MiddlewareSetting,
  settingName,
  socketSettings,
} from './middleware-settings.js'

const PARTS = ['added', 'allocations', 'sockets'] as const
type Part = (typeof PARTS)[number]

const FULL: MiddlewareEffort = {
  added: { lives: 3, repeats: 5 },
  allocationRuns: 3,
  sockets: { runs: 7, ms: 1_000, warmUpMs: 1_000 },
}
const QUICK: MiddlewareEffort = {
  added: { lives: 1, repeats: 2 },
  allocationRuns: 1,
  sockets: { runs: 2, ms: 400, warmUpMs: 400 },
}

const USAGE = `npm run bench:edge -- [--quick] [--only FRAMEWORK]... [--part PART]... [--json FILE]

  --quick           short runs: a first look, no figures to quote
  --only FRAMEWORK  one of them, may be given again: ${FRAMEWORKS.join(', ')}
  --part PART       the same of what is measured: ${PARTS.join(', ')}
  --json FILE       where all samples go; default bench/results/local/middleware.json of a whole run, bench/results/local/quick/middleware.json of others`

const values = givenOptions(USAGE, {
  quick: { type: 'boolean', default: false },
  only: { type: 'string', multiple: true, default: [] },
  part: { type: 'string', multiple: true, default: [] },
  json: { type: 'string' },
})

await run()

async function run(): Promise<void> {
  const frameworks = chosenNames<Framework>('framework', values.only, FRAMEWORKS, USAGE)
  const parts = chosenNames<Part>('part', values.part, PARTS, USAGE)
  const isWhole = !values.quick && frameworks === FRAMEWORKS && parts === PARTS
  const file = values.json ?? `${isWhole ? RAW : QUICK_RESULTS}middleware.json`
  installRivals()
  const effort = values.quick ? QUICK : FULL
  const about = { kind: 'middleware', startedAt: new Date().toISOString(), machine: machine(), rivals: rivalVersions(), effort } as const
  const loadBefore = load()
  const of = (part: Part, settings: readonly MiddlewareSetting[]): readonly MiddlewareSetting[] => (parts.includes(part) ? settings : [])
  const found = {
    added: await each('added', of('added', addedSettings(frameworks)), (setting) => measureAdded(setting, effort.added)),
    allocations: await each('allocations', of('allocations', allocationSettings(frameworks)), (setting) =>
      countAllocations(setting, effort.allocationRuns),
    ),
    sockets: await each('sockets', of('sockets', socketSettings(frameworks)), (setting) => measureSockets(setting, effort.sockets)),
  }
  const results: MiddlewareResults = { ...about, loadBefore, loadAfter: load(), ...found }
  printReport(middlewareReport(results))
  writeResults(file, results)
}

async function each<Result>(
  part: Part,
  settings: readonly MiddlewareSetting[],
  measured: (setting: MiddlewareSetting) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = []
  for (const [index, setting] of settings.entries()) {
    console.error(`${part} ${index + 1} of ${settings.length}: ${setting.framework}, ${settingName(setting)} ...`)
    results.push(await measured(setting))
  }
  return results
}
