import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Config } from 'sluicegate-config/config.js'
import { type Part, Parts } from './part.js'

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
