import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ROOT } from './root.mjs'
import { isOnlyLong } from './tests.mjs'

/** Below this number a process for each file is as fast, and its output is easier to read. */
const MIN_FILES_TO_GROUP = 60
/** Enough groups to keep the cores busy to the end, few enough to save most of the start-ups; more where tests are longer. */
const [GROUPS, GROUPS_OF_LONG_RUN] = [32, 72]
/** Not below node_modules, where the test runner of Node 22 and newer runs nothing. */
const FOLDER = '.cache/test-groups'

/**
 * The name of a file that needs its own process, because others would disturb it: warnings that are given once in a process, listeners of
 * the process, its memory and pauses, workers of `node:cluster`; or it would disturb others, as what blocks for seconds while it is loaded,
 * or takes minutes in a long run.
 */
const ALONE = /\.alone\.test\.js$/

/**
 * What to give to `node --test`: files that need a process of their own or take minutes, and files that import many others. A process costs a
 * tenth of a second of the processor before its first test, with clients of Redis a quarter, and most test files need less for their tests.
 * Those that only a long run has are to begin first: none of them is to run by itself at the end.
 */
export function groupTests(compiled) {
  if (compiled.length < MIN_FILES_TO_GROUP) return { single: [...compiled], groups: [] }
  const long = compiled.filter(isOnlyLong)
  const alone = compiled.filter((file) => ALONE.test(file))
  const together = compiled.filter((file) => !isOnlyLong(file) && !ALONE.test(file))
  // Neighbours share what they import: a client of Redis, gRPC, a framework.
  const size = Math.ceil(together.length / (long.length > 0 ? GROUPS_OF_LONG_RUN : GROUPS))
  const groups = Array.from({ length: Math.ceil(together.length / size) }, (_, i) => together.slice(i * size, (i + 1) * size))
  return { single: [...long, ...alone], groups }
}

/**
 * A suite is given nothing of its file. Most of what tests call runs a few times only: V8 optimizes it later than usual, which saves a tenth of
 * a group's processor time. No test runs before all files are loaded: what a file starts while it is loaded, such as a server, is waited for,
 * and tests of other files would hold that up.
 */
const HEAD = `import { setFlagsFromString } from 'node:v8'
import { describe } from 'node:test'
import '${new URL('group-end.mjs', import.meta.url).href}'
setFlagsFromString('--interrupt-budget=600000')
const loading = []
const loaded = Promise.resolve()
  .then(() => Promise.allSettled(loading))
  .then(() => undefined)
function load(file) {
  const own = import(file)
  loading.push(own)
  return own.then(() => loaded)
}
`

/**
 * Writes a file for each group that imports its files, and returns their paths, which `node --test` runs in the order of their names: that of
 * the groups. Each file is a suite of its name: its hooks run around its own tests, and a failure names the file.
 */
export function writeGroups(groups, root = ROOT) {
  mkdirSync(join(root, FOLDER), { recursive: true })
  return groups.map((files, i) => {
    const path = `${FOLDER}/group-${String(i + 1).padStart(3, '0')}.mjs`
    const suites = files.map((file) => `describe('${file}', () => load('${pathToFileURL(resolve(root, file)).href}'))\n`)
    writeFileSync(join(root, path), `${HEAD}${suites.join('')}`)
    return path
  })
}

/** Whether a test file is a group that {@link writeGroups} wrote. */
export function isGroup(path) {
  return path.includes(`${FOLDER}/`)
}
