import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { Refusal, ROOT, sourcesBelow } from './root.mjs'

const PATTERNS = `PATTERN is a folder or a file (source or compiled), a part of a path, or a glob in quotes. Without one, all test files run, but for folders
  around the product (tools, bench, lab, site, deploy, testkit) in which nothing changed.
  --long         every test in full length, also those of *.long.test.ts files: what continuous integration runs
  --name TEXT    run only tests whose names match TEXT, a part of a name or a regular expression
  --failed       run only the files with tests that failed in the last run
  --help         this text
Other options that begin with a dash go to "node --test", such as --test-concurrency=1.`

/** The output of `--help` for each command that runs tests. */
export const TEST_HELP = {
  test: `npm test -- [PATTERN]... [options]
Builds what changed, then runs the tests. Long tests run in a short form, or not at all, without --long ("npm run test:long" is the same).

${PATTERNS}

  npm test -- waiting
  npm test -- packages/sluicegate/src/time/clock.test.ts
  npm test -- 'src/redis/lease*' --name 'never over'`,

  'test:watch': `npm run test:watch -- [PATTERN]... [options]
Builds, runs the tests, then compiles what you save and runs again the test files that it concerns. Ctrl+C ends it.
Give a PATTERN: without one the first run takes as long as "npm test". Changes of .lua files, of packages/sluicegate/assembly and of the
dashboard page need "npm run build".

${PATTERNS}`,
}

/** Test files that only a long run has. */
const LONG_FILE = /\.long\.test\.[jt]s$/

/** What stands around the product. Its own tests run where it changed, and in continuous integration. */
const AROUND = ['tools', 'bench', 'lab', 'site', 'deploy', 'packages/testkit']

/**
 * The compiled test files, and the options for `node --test`.
 *
 * `--long` chooses also the files that only a long run has. Without `--long` and patterns, files of folders around the product that did not
 * change are left out, and those folders returned as `unchanged`. Other arguments that begin with a dash go to Node.js; `--name X` is short for its
 * `--test-name-pattern=X`. The others are patterns: a file or a folder that exists, source or compiled; a glob; else a part of a path. A file
 * that one of them matches is chosen.
 */
export function chooseTests(args, unchanged = unchangedAround) {
  const { patterns, nodeOptions, long } = split(args)
  // From the sources, so that a deleted test whose output is still in dist does not run.
  const every = ['packages', 'tools', 'bench', 'lab', 'site', 'deploy'].flatMap(sourcesBelow).filter((file) => file.endsWith('.test.ts'))
  const all = long ? every : every.filter((file) => !isOnlyLong(file))
  for (const { text, matches } of patterns) {
    if (all.some(matches)) continue
    const elsewhere = every.some(matches) ? '; npm run test:long has files that match' : ''
    throw new Refusal(`No test files match "${text}"${elsewhere}.\nA pattern is a folder, a file, a part of a path, or a glob.`)
  }
  const left = long || patterns.length > 0 ? [] : unchanged()
  const chosen = all.filter((file) =>
    patterns.length === 0 ? !left.some((folder) => isBelow(file, folder)) : patterns.some(({ matches }) => matches(file)),
  )
  return { files: chosen.map(compiled), nodeOptions, unchanged: left }
}

/** Folders around the product as they are in the branch that this one will join; none where that is not known. */
function unchangedAround() {
  if (process.env.CI) return []
  const git = (...args) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' })
  const base = ['origin/HEAD', 'HEAD']
    .map((name) => git('merge-base', 'HEAD', name))
    .find(({ status }) => status === 0)
    ?.stdout.trim()
  if (!base) return []
  const changed = `${git('diff', '--name-only', base).stdout}${git('ls-files', '--others', '--exclude-standard').stdout}`.split('\n')
  return AROUND.filter((folder) => !changed.some((file) => isBelow(file, folder)))
}

/** The program of a longer proof: prove-<name>.ts, wherever it stands. */
export function chooseProof(name) {
  const proofs = new Map()
  for (const file of sourcesBelow('packages')) {
    const [, found] = file.match(/\/prove-([^/]+)\.ts$/) ?? []
    if (found !== undefined) proofs.set(found, compiled(file))
  }
  if (proofs.has(name)) return proofs.get(name)
  throw new Refusal(`${name === undefined ? 'Say what to prove' : `Nothing proves "${name}"`}; there are ${[...proofs.keys()].join(', ')}`)
}

function split(args) {
  const patterns = []
  const nodeOptions = []
  let long = false
  for (let i = 0; i < args.length; i++) {
    const arg = args[i]
    if (arg === '--long') long = true
    else if (arg === '--name' && args[i + 1] === undefined) throw new Refusal('--name needs a part of a test name, or a regular expression')
    else if (arg === '--name') nodeOptions.push(`--test-name-pattern=${args[++i]}`)
    else if (arg.startsWith('--name=')) nodeOptions.push(`--test-name-pattern=${arg.slice('--name='.length)}`)
    else if (arg.startsWith('-')) nodeOptions.push(arg)
    else patterns.push({ text: arg, matches: matcher(arg) })
  }
  return { patterns, nodeOptions, long }
}

function matcher(pattern) {
  const path = relative(ROOT, resolve(ROOT, pattern))
  if (existsSync(join(ROOT, path))) return (file) => isBelow(file, path) || isBelow(compiled(file), path)
  const isPart = /[*?{]/.test(pattern) ? asGlob(pattern) : (file) => file.includes(pattern)
  return (file) => isPart(file) || isPart(compiled(file))
}

/** `*` is any part of a name, `**` any number of folders, `?` one character, `{a,b}` one of several. It may begin at any folder. */
function asGlob(pattern) {
  const source = pattern.replace(/^\.?\//, '').replace(/\*\*\/?|[*?{},]|[.+^$()|[\]\\]/g, (part) => {
    if (part.startsWith('**')) return `(?:.*/)?${part === '**' ? '[^/]*' : ''}`
    return { '*': '[^/]*', '?': '[^/]', '{': '(?:', '}': ')', ',': '|' }[part] ?? `\\${part}`
  })
  const whole = new RegExp(`(?:^|/)${source}$`)
  return (file) => whole.test(file)
}

/** Whether only a long run has the file, source or compiled. */
export function isOnlyLong(file) {
  return LONG_FILE.test(file)
}

/** packages/a/src/b.test.ts is compiled to packages/a/dist/b.test.js, tools/b.test.ts to tools/dist/b.test.js. */
function compiled(file) {
  const inPackage = file.replace(/^(packages\/[^/]+|bench|lab|site|deploy)\/src\//, '$1/dist/').replace(/^tools\//, 'tools/dist/')
  return inPackage.replace(/\.ts$/, '.js')
}

function isBelow(file, path) {
  return path === '' || file === path || file.startsWith(`${path}/`)
}
