import assert from 'node:assert/strict'
import type { Awaitable } from 'sluicegate-server/dist/engine/engine.js'

/** What a verb in memory answers: a value, never a promise. */
export function atOnce<Value>(answer: Awaitable<Value> | undefined): Value {
  assert.ok(answer !== undefined && !(answer instanceof Promise), 'it answers at once')
  return answer as Value
}
