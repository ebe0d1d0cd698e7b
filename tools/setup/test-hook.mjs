import { createRequire } from 'node:module'

/** The first is loaded by the second, which has to be loaded later than this. */
const hooks = createRequire(import.meta.url)('node:async_hooks')
const { createHook, executionAsyncId } = hooks

/** What `node:test` of Node 20 gives its hook, and each test that it has made while the hook was on. */
let known
const tests = []

/**
 * Loads `node:test`. That of Node 20 follows every promise of the process with a hook, up to its collection as garbage, to find which test what
 * happens belongs to: up to half of the time of tests of many promises. Suites need the hook while they are defined, and tests no more:
 * {@link endHook} ends it. A test that runs says `t.after`: what it gives to `after` then ends with the group.
 */
export async function loadNodeTest() {
  if (process.versions.node.startsWith('20.')) hooks.createHook = knownHook
  const loaded = await import('node:test')
  hooks.createHook = createHook
  failWhenEndedEarly(loaded)
  return loaded
}

/** What a failed test leaves open ends with its group: nothing else runs as long after the last test. */
const LEFT_OPEN_MS = 20_000

/** `process.exit` in a test would drop those behind it, and the process would have passed. */
function failWhenEndedEarly({ after }) {
  let areOver = false
  after(() => {
    areOver = true
    setTimeout(endWhatIsLeft, LEFT_OPEN_MS).unref()
  })
  process.on('exit', () => {
    if (areOver) return
    console.error('The process ended before its tests did: one of them called process.exit.')
    process.exitCode = 1
  })
}

function endWhatIsLeft() {
  console.error(
    `The tests are over, but the process goes on with what one of them left open: ${process.getActiveResourcesInfo().join(', ')}`,
  )
  process.exit(1)
}

function knownHook({ init, destroy }) {
  const hook = createHook({
    init(id, type, trigger, resource) {
      if (type === 'Test') tests.push(resource)
      init(id, type, trigger, resource)
    },
    destroy,
  })
  known = { hook, init, destroy }
  return hook
}

/** Ends the hook once all test files are loaded. Errors that nothing caught are then those of the test that runs. */
export async function endHook(loaded) {
  await loaded
  if (known === undefined) return
  known.hook.disable()
  for (const event of ['uncaughtException', 'unhandledRejection']) {
    process.prependListener(event, blame)
    process.on(event, () => known.destroy(executionAsyncId()))
  }
}

/** `node:test` takes the test from what is executed. Without one the process fails, and this says where. */
function blame(error) {
  const running = tests.findLast(isRunning)
  if (running !== undefined) return known.init(executionAsyncId(), 'Test', 0, running)
  console.error(error)
  process.exitCode = 1
}

function isRunning({ startTime, endTime, hookType, reportedType }) {
  return startTime !== null && endTime === null && hookType === undefined && reportedType !== 'suite'
}
