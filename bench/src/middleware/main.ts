import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { chosenNames } from '../chosen-names.js'
import { load, machine } from '../machine.js'
import { verdictsText } from '../report.js'
import { installRivals, rivalVersions } from '../rivals.js'
import { tableText } from '../study/study-table.js'
import { countAllocations } from './count-allocations.js'
import { measureAdded } from './measure-added.js'
import { measureSockets } from './measure-sockets.js'
import type { MiddlewareEffort, MiddlewareResults } from './middleware-results.js'
import { FRAMEWORKS, type Framework, type MiddlewareSetting, settingName } from './middleware-setting.js'
import { addedSettings, allocationSettings, socketSettings } from './middleware-settings.js'
import { middlewareTables } from './middleware-tables.js'
import { middlewareVerdicts } from './middleware-verdicts.js'

const RESULTS = fileURLToPath(new URL('../../results/', import.meta.url))
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
  --json FILE       where all samples go; default bench/results/middleware.json of a whole run, bench/results/local/middleware.json of others`

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
    part: { type: 'string', multiple: true, default: [] },
    json: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})

if (values.help) console.log(USAGE)
else await run()

async function run(): Promise<void> {
  const frameworks = chosenNames<Framework>('framework', values.only, FRAMEWORKS, USAGE)
  const parts = chosenNames<Part>('part', values.part, PARTS, USAGE)
  const isWhole = !values.quick && frameworks === FRAMEWORKS && parts === PARTS
  const file = values.json ?? `${RESULTS}${isWhole ? '' : 'local/'}middleware.json`
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
  for (const table of middlewareTables(results)) console.log(tableText(table))
  const verdicts = middlewareVerdicts(results)
  if (verdicts.length > 0) console.log(verdictsText(verdicts))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(results)}\n`)
  console.log(`\nwritten to ${file}`)
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
