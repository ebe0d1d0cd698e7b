// What `npm start`, `npm test` and the scripts beside them in package.json run first. Plain JavaScript without
// dependencies, because it has to work in a fresh clone, where there are none yet.
import { availableParallelism } from 'node:os'
import { buildWhenStale, TSC } from './setup/build.mjs'
import { installWhenStale, requireRivals } from './setup/dependencies.mjs'
import { failedFiles, printSummary, recordingOptions } from './setup/failed-tests.mjs'
import { requireNode } from './setup/node-version.mjs'
import { Refusal } from './setup/root.mjs'
import { run, runTogether, serve } from './setup/run.mjs'
import { commandsFor, requireCommands } from './setup/system-packages.mjs'
import { groupTests, writeGroups } from './setup/test-groups.mjs'
import { chooseProof, chooseTests, TEST_HELP } from './setup/tests.mjs'

/** A test that hangs becomes one that fails. Files have the same time, and groups of files: on a machine busy with other things, minutes. */
const LONGEST_TEST_MS = 900_000
/**
 * More than there are cores: tests wait for servers, processes and what has to expire. With more of them at once, what has a time of its own comes late;
 * tests of the long run have processes of their own that keep all cores busy.
 */
const filesAtOnce = () => (process.env.SLUICEGATE_TEST_RUN === 'long' ? availableParallelism() + 1 : 2 * availableParallelism() + 1)

/** Compiled files that are no tests but use programs of the system. */
const ON_SERVERS = {
  'bench:redis': ['bench/dist/redis/main.js'],
  'bench:postgres': ['bench/dist/postgres/main.js'],
  'bench:server': ['bench/dist/server/main.js'],
  'bench:regions': ['bench/dist/regions/main.js'],
  'bench:replay': ['bench/dist/replay/main.js'],
  chaos: ['lab/dist/chaos/main.js'],
  lab: ['lab/dist/main.js'],
  executable: ['deploy/dist/build-executable.js'],
  deb: ['deploy/dist/build-deb.js'],
  image: ['deploy/dist/build-image.js'],
  'lab:compare': ['lab/dist/compare-main.js'],
  'prove runtimes': ['packages/sluicegate/dist/redis/'],
}

const TASKS = {
  build() {},
  api: () => run(process.execPath, ['tools/dist/write.js', 'api']),
  pack: () => run(process.execPath, ['tools/dist/write.js', 'packages']),
  start: (args) => serve('packages/server/bundle/main.js', ['serve', ...withConfig(args)]),
  test: (args) => {
    // Read by packages/testkit/src/run-length.ts.
    if (args.includes('--long')) process.env.SLUICEGATE_TEST_RUN = 'long'
    return runTests(args.includes('--failed') ? failedTests(args) : chooseTests(args), LONGEST_TEST_MS)
  },
  'test:watch': (args) =>
    runTogether([
      [process.execPath, TSC, '-b', '--watch', '--preserveWatchOutput'],
      [process.execPath, '--watch', ...nodeTestArguments(chooseTests(args), LONGEST_TEST_MS)],
    ]),
  prove: ([name, ...args]) => run(process.execPath, [chooseProof(name), ...args]),
  bench: (args) => run(process.execPath, ['bench/dist/main.js', ...args]),
  'bench:redis': (args) => run(process.execPath, ['bench/dist/redis/main.js', ...args]),
  'bench:postgres': (args) => run(process.execPath, ['bench/dist/postgres/main.js', ...args]),
  'bench:edge': (args) => run(process.execPath, ['bench/dist/middleware/main.js', ...args]),
  'bench:workers': (args) => run(process.execPath, ['bench/dist/workers/main.js', ...args]),
  'bench:server': (args) => run(process.execPath, ['bench/dist/server/main.js', ...args]),
  'bench:regions': (args) => run(process.execPath, ['bench/dist/regions/main.js', ...args]),
  'bench:holds': (args) => run(process.execPath, ['bench/dist/holds/main.js', ...args]),
  'bench:replay': (args) => run(process.execPath, ['bench/dist/replay/main.js', ...args]),
  chaos: (args) => run(process.execPath, ['lab/dist/chaos/main.js', ...args]),
  lab: (args) => run(process.execPath, ['lab/dist/main.js', ...args]),
  'lab:compare': (args) => run(process.execPath, ['lab/dist/compare-main.js', ...args]),
  'lab:simulate': (args) => run(process.execPath, ['lab/dist/simulation/simulation-main.js', ...args]),
  plots: () => run(process.execPath, ['bench/dist/publish.js']),
  site: (args) => run(process.execPath, ['site/dist/main.js', ...args]),
  executable: () => run(process.execPath, ['deploy/dist/build-executable.js']),
  deb: () => run(process.execPath, ['deploy/dist/build-deb.js']),
  image: () => run(process.execPath, ['deploy/dist/build-image.js']),
  sbom: () => run(process.execPath, ['tools/dist/write.js', 'sbom']),
  notes: (args) => run(process.execPath, ['tools/dist/write.js', 'notes', ...args]),
  // The gate builds for itself, as its first step: a fault in the types is one of its findings.
  check: (args) => run(process.execPath, ['tools/dist/check.js', ...args]),
}

async function runTests(chosen, longestMs) {
  if (chosen.unchanged?.length > 0)
    console.error(`Left out, as nothing changed there: tests of ${chosen.unchanged.join(', ')}. To run them: npm test -- FOLDER`)
  requireRivals(chosen.files)
  const hasReporter = chosen.nodeOptions.some((option) => option.startsWith('--test-reporter'))
  const nodeOptions = [...(hasReporter ? [] : recordingOptions()), ...chosen.nodeOptions]
  await run(process.execPath, nodeTestArguments({ files: inProcesses(chosen), nodeOptions }, longestMs))
  if (!hasReporter) printSummary()
}

/** Files that failed in the last run, as they are: some may be groups. */
function failedTests(args) {
  return { files: failedFiles(), nodeOptions: args.filter((arg) => arg !== '--failed' && arg !== '--long') }
}

function inProcesses({ files, nodeOptions }) {
  // A pattern of names would skip the suites of the groups.
  if (nodeOptions.some((option) => option.startsWith('--test-name-pattern'))) return files
  const { single, groups } = groupTests(files)
  return groups.length === 0 ? single : writeGroups([...single.map((file) => [file]), ...groups])
}

function nodeTestArguments({ files, nodeOptions }, longestMs) {
  return ['--test', `--test-timeout=${longestMs}`, `--test-concurrency=${filesAtOnce()}`, ...nodeOptions, ...files]
}

/** Compiled files of a task, which need what their folders need. */
function filesOf(task, args) {
  if (Object.hasOwn(TEST_HELP, task) && args.includes('--failed')) return failedFiles()
  if (Object.hasOwn(TEST_HELP, task)) return chooseTests(args).files
  return ON_SERVERS[[task, ...args.slice(0, 1)].join(' ')] ?? ON_SERVERS[task] ?? []
}

function withConfig(args) {
  return args.some((arg) => arg === '--config' || arg.startsWith('--config=')) ? args : ['--config', 'examples/sluicegate.yaml', ...args]
}

try {
  requireNode('20.19.0')
  const [task = 'build', ...args] = process.argv.slice(2)
  if (!Object.hasOwn(TASKS, task)) throw new Refusal(`no task "${task}"; there are ${Object.keys(TASKS).join(', ')}`)
  if (Object.hasOwn(TEST_HELP, task) && args.includes('--help')) console.log(TEST_HELP[task])
  else {
    // Before minutes of set-up: what has to be installed by hand is reported at once.
    const programs = requireCommands(commandsFor(filesOf(task, args)))
    // When another step fails, that is what is reported.
    programs.catch(() => undefined)
    installWhenStale()
    buildWhenStale({ toolsOnly: task === 'check' })
    await programs
    await TASKS[task](args)
  }
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  console.error(`\n${error.message}`)
  process.exitCode = 1
}
