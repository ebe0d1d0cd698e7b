import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { pino } from 'pino'
import type { Config } from 'sluicegate-config/config.js'
import { inLaterTurn, isInputTimeOver } from './later-turns.js'
import { openFiles } from './open-files.js'
import { type Part, Parts, ticking } from './part.js'

const NOW = { drainMs: 0, finishMs: 0 }
const CONFIG = {} as Config

/** A part that notes what is done with it, and fails where `failing` says so. */
function noting(name: string, notes: string[], failing: 'start' | 'reload' | 'none' = 'none'): Part {
  const note = (what: string) => void notes.push(`${what} ${name}`)
  return {
    name,
    async start() {
      if (failing === 'start') throw new Error(`${name} cannot start`)
      note('start')
    },
    ready: () => note('ready'),
    reload() {
      if (failing === 'reload') throw new RangeError(`${name} refuses`)
      return { commit: () => note('commit'), discard: () => note('discard') }
    },
    drain: () => note('drain'),
    stop: () => note('stop'),
  }
}

test('parts start in order, are ready when all have started, and drain and stop in reverse', async () => {
  const notes: string[] = []
  const parts = new Parts([noting('store', notes), { name: 'bare' }, noting('port', notes)])
  assert.equal(parts.phase, 'starting')
  await parts.start()
  assert.equal(parts.phase, 'ready')
  assert.deepEqual(notes.splice(0), ['start store', 'start port', 'ready store', 'ready port'])
  const stopped = parts.stop(NOW)
  assert.equal(parts.phase, 'stopping')
  await Promise.all([stopped, parts.stop(NOW)])
  assert.deepEqual(notes, ['drain port', 'drain store', 'stop port', 'stop store'])
})

test('a part that cannot start ends those before it, and none is ready', async () => {
  const notes: string[] = []
  const parts = new Parts([noting('store', notes), noting('page', notes), noting('port', notes, 'start'), noting('late', notes)])
  await assert.rejects(parts.start(), /port cannot start/)
  assert.deepEqual(notes, ['start store', 'start page', 'stop page', 'stop store'])
  assert.equal(parts.phase, 'starting')
})

test('a reload is prepared by all parts before the first puts it in force; one that refuses makes all others discard it', () => {
  const notes: string[] = []
  const willing = new Parts([noting('limits', notes), { name: 'bare' }, noting('quotas', notes)])
  const prepared = willing.reload(CONFIG)
  assert.deepEqual(notes, [])
  prepared.commit()
  assert.deepEqual(notes.splice(0), ['commit limits', 'commit quotas'])
  willing.reload(CONFIG).discard?.()
  assert.deepEqual(notes.splice(0), ['discard limits', 'discard quotas'])
  const refusing = new Parts([noting('limits', notes), noting('quotas', notes, 'reload'), noting('late', notes)])
  assert.throws(() => refusing.reload(CONFIG), /quotas refuses/)
  assert.deepEqual(notes, ['discard limits'])
})

function workFor(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
}

test('input of a turn has its time once, and again in the next turn', async () => {
  await nextTurn()
  assert.equal(isInputTimeOver(), false)
  workFor(1)
  assert.equal(isInputTimeOver(), true)
  assert.equal(isInputTimeOver(), true)
  await nextTurn()
  assert.equal(isInputTimeOver(), false)
})

test('calls that wait run in their order, a few in a turn, and each turn runs one at least', async () => {
  const ran: number[] = []
  const alone: boolean[] = []
  let turns = 0
  for (let i = 0; i < 6; i++)
    inLaterTurn((isAlone) => {
      ran.push(i)
      alone.push(isAlone)
      workFor(1)
    })
  assert.deepEqual(ran, [])
  while (ran.length < 6 && turns < 100) {
    const before = ran.length
    await nextTurn()
    assert.ok(ran.length - before <= 1)
    turns++
  }
  assert.deepEqual(ran, [0, 1, 2, 3, 4, 5])
  assert.deepEqual(alone, [false, false, false, false, false, true])
})

test('a tick that has more to do goes on in the next turn, until its part stops', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  let [ticks, left] = [0, 3]
  const part = ticking('sweep', 1_000, () => {
    ticks++
    return --left <= 0
  })
  part.ready?.()
  t.mock.timers.tick(2_000)
  assert.equal(ticks, 1, 'the next one does not begin beside it')
  while (left > 0) await nextTurn()
  t.mock.timers.tick(1_000)
  assert.equal(ticks, 4)
  left = 10
  t.mock.timers.tick(1_000)
  part.stop?.(NOW)
  await nextTurn()
  assert.equal(ticks, 5)
})

function linesOf(t: TestContext, canOpen: () => boolean, most: number | undefined): string[] {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const lines: string[] = []
  const part = openFiles(pino({}, { write: (line: string) => void lines.push(line) }), 1_000, canOpen, most)
  part.ready?.()
  t.mock.timers.tick(5_000)
  part.stop?.({ drainMs: 0, finishMs: 0 })
  return lines
}

test('that no more files can be opened is in the log, once', (t) => {
  const lines = linesOf(t, () => false, undefined)
  assert.equal(lines.length, 1)
  assert.match(lines[0] as string, /closed without an answer: too many files are open: raise the limit/)
})

test('a limit below max-connections is said at the start; enough is not', (t) => {
  assert.match(linesOf(t, () => true, 1_000).join(), /^[^\n]*"openFiles":1000,"maxConnections":1000[^\n]*\n$/)
})

test('with room for all connections nothing is said', (t) =>
  assert.deepEqual(
    linesOf(t, () => true, 65_536),
    [],
  ))
