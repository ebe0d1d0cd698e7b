import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoadOutcome } from '../load-plan.js'
import { type PooledConnection, RequestPool } from './request-pool.js'

/** Connections that answer when the test says so. */
function setUp(connections: number, depth: number) {
  let looks = 0
  const sent: { readonly key: string; readonly answer: (outcome: LoadOutcome) => void }[] = []
  const connection = (): PooledConnection => {
    let outstanding = 0
    return {
      get outstanding() {
        looks++
        return outstanding
      },
      send: (key) =>
        new Promise((resolve) => {
          outstanding++
          sent.push({
            key,
            answer: (outcome) => {
              outstanding--
              resolve(outcome)
            },
          })
        }),
      close: () => {},
    }
  }
  const pool = new RequestPool(Array.from({ length: connections }, connection), depth)
  return { pool, sent, looks: () => looks }
}

test('requests beyond what the connections take wait, and are sent first come, first served', async () => {
  const { pool, sent } = setUp(2, 2)
  const answers = Array.from({ length: 7 }, (_, i) => pool.send(`k${i}`))
  assert.equal(sent.length, 4)
  for (let i = 0; i < 7; i++) {
    sent[i]?.answer('allowed')
    assert.equal(await answers[i], 'allowed')
  }
  assert.deepEqual(
    sent.map(({ key }) => key),
    ['k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6'],
  )
})

test('while all connections are busy a request costs no look at each of them', async () => {
  const { pool, sent, looks } = setUp(1_000, 1)
  for (let i = 0; i < 11_000; i++) void pool.send('k')
  assert.equal(sent.length, 1_000)
  for (let i = 0; i < 11_000; i++) {
    sent[i]?.answer('denied')
    await Promise.resolve()
  }
  assert.equal(sent.length, 11_000)
  assert.ok(looks() < 50_000, `${looks()} looks`)
})
