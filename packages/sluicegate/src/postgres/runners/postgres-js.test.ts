import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresJsRunner } from './postgres-js.js'

const STATEMENT = { name: 'one', text: 'SELECT 1' }

/** A statement of `postgres` that a connection has or not, and how often it was cancelled. */
function pendingIn(state: unknown) {
  let answer = (_: readonly []): void => undefined
  const promise = new Promise<readonly []>((resolve) => {
    answer = resolve
  })
  const counted = { cancels: 0, answer: () => answer([]) }
  const cancel = (): void => {
    counted.cancels++
  }
  const sql = Object.assign(() => undefined, { unsafe: () => Object.assign(promise, { state, active: false, cancel }) })
  return { sql, counted }
}

for (const [name, state, cancels] of [
  ['waits for a connection is dropped when it is given up', null, 1],
  ['a connection has is left alone, also when it waits behind others there', { pid: 1 }, 0],
] as const) {
  test(`a statement that ${name}`, async () => {
    const { sql, counted } = pendingIn(state)
    const given = new AbortController()
    const rows = postgresJsRunner(sql).run(STATEMENT, [], true, given.signal)
    given.abort()
    assert.equal(counted.cancels, cancels)
    counted.answer()
    assert.deepEqual(await rows, [])
  })
}
