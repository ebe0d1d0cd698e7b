import { readFileSync } from 'node:fs'
import { trackedFiles } from './check-import-circles.js'
import { faultsOfCommand } from './faults-of-command.js'

const WORKFLOWS = /^\.github\/workflows\/.*\.ya?ml$/
const RENOVATE = '.github/renovate.json'

/** Faults in what GitHub and Renovate read, which they would report only after a push, or not at all. */
export function checkGithub(): string[] {
  const workflows = trackedFiles(WORKFLOWS)
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }
  return [
    ...faultsOfCommand(process.execPath, ['tools/dist/lint-workflows.js', ...workflows]),
    ...workflows.flatMap((file) => unknownScripts(file, readFileSync(file, 'utf8'), Object.keys(scripts))),
    ...workflows.flatMap((file) => unpinnedActions(file, readFileSync(file, 'utf8'))),
    ...renovateFaults(readFileSync(RENOVATE, 'utf8'), trackedFiles(/(^|\/)package\.json$/)),
  ]
}

/** Scripts that a workflow runs and package.json does not have. */
export function unknownScripts(file: string, workflow: string, scripts: readonly string[]): string[] {
  const run = [...workflow.matchAll(/\bnpm (?:run ([\w:-]+)|(test|start)\b)/g)].map(([, script, short]) => script ?? short ?? '')
  return [...new Set(run)]
    .filter((script) => !scripts.includes(script))
    .map((script) => `${file} runs "npm run ${script}", which is not there`)
}

/** Actions that a workflow uses by a name that may lead to other code tomorrow. */
export function unpinnedActions(file: string, workflow: string): string[] {
  const used = Array.from(workflow.matchAll(/^\s*(?:- )?uses: *(\S+)(.*)$/gm), ([, action = '', comment = '']) => ({ action, comment }))
  return used
    .filter(({ action, comment }) => !/@[\da-f]{40}$/.test(action) || !/# v\d/.test(comment))
    .map(({ action }) => `${file} uses ${action}: pin it by its commit, with "# vX.Y.Z" behind it`)
}

/** Rules of Renovate that match no manifest or no dependency of this repository: they would do nothing. */
export function renovateFaults(text: string, manifests: readonly string[], read = (file: string) => readFileSync(file, 'utf8')): string[] {
  const { packageRules = [] } = JSON.parse(text) as {
    packageRules?: readonly { matchPackageNames?: readonly string[]; matchFileNames?: readonly string[] }[]
  }
  const names = new Set(manifests.flatMap((file) => dependencyNames(JSON.parse(read(file)))))
  const idle = packageRules.flatMap(({ matchPackageNames = [], matchFileNames = [] }) => [
    ...matchPackageNames.filter((name) => !/[*/]$|^[!/]/.test(name) && !names.has(name)).map((name) => `no package.json names ${name}`),
    ...matchFileNames.filter((name) => !manifests.some((file) => isMatch(file, name))).map((name) => `no package.json is ${name}`),
  ])
  return idle.map((fault) => `${RENOVATE}: ${fault}`)
}

function dependencyNames(manifest: Readonly<Record<string, unknown>>): string[] {
  const lists = ['dependencies', 'devDependencies', 'peerDependencies', 'optionalDependencies']
  return lists.flatMap((list) => Object.keys((manifest[list] as object | undefined) ?? {}))
}

function isMatch(file: string, name: string): boolean {
  return name.endsWith('/**') ? file.startsWith(name.slice(0, -2)) : file === name
}
