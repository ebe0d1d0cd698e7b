import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOf, concurrency, slidingWindow, tokenBucket } from '../index.js'
import type { Policy } from '../policy/policy.js'
import { undoingOf } from './late-answer.js'
import type { StoreAnswer, StoreRequest } from './store.js'
import { storePoliciesOf } from './store-form.js'

const NOW_US = 5_000_000

function requestsOf(policy: Policy, tokens = 3): StoreRequest[] {
  return storePoliciesOf(policy).forms.map((form) => ({ form, key: 'k', tokens, mostUs: 1000, permit: 'p1' }))
}

function answerTo(requests: readonly StoreRequest[], done = true, waitUs = 700): StoreAnswer {
  const standing = { done, debt: 9, blockedUs: 0, untilFreeUs: 0, untilNewUs: 0, waitUs }
  return { nowUs: NOW_US, standings: requests.map(() => standing) }
}

test('a booking for a caller who has gone is cancelled as he would have done', () => {
  const requests = requestsOf(slidingWindow({ limit: 10, window: '1s' }))
  const { verb, requests: back = [] } = undoingOf('reserve', requests, answerTo(requests)) ?? {}
  assert.equal(verb, 'cancel')
  assert.deepEqual(
    back.map(({ booking }) => booking),
    [{ cost: 3, bookedUs: NOW_US, atUs: NOW_US + 700, debt: 9 }],
  )
  assert.deepEqual(
    back.map(({ key, tokens, mostUs }) => [key, tokens, mostUs]),
    [['k', 3, undefined]],
  )
})

test('a permit for a caller who has gone is released; of allOf only the permit', () => {
  const requests = requestsOf(allOf([tokenBucket({ limit: 10, window: '1s' }), concurrency({ limit: 5, ttl: '1m' })]))
  const { verb, requests: back = [] } = undoingOf('take', requests, answerTo(requests)) ?? {}
  assert.equal(verb, 'release')
  assert.deepEqual(
    back.map(({ form, permit }) => `${form.form} ${permit}`),
    ['concurrency p1'],
  )
})

test('tokens of a take stay spent, and what was denied needs nothing', () => {
  const rate = requestsOf(tokenBucket({ limit: 10, window: '1s' }))
  assert.equal(undoingOf('take', rate, answerTo(rate)), undefined)
  assert.equal(undoingOf('reserve', rate, answerTo(rate, false)), undefined)
  const permits = requestsOf(concurrency({ limit: 5, ttl: '1m' }))
  assert.equal(undoingOf('take', permits, answerTo(permits, false)), undefined)
})

test('other verbs are not taken back', () => {
  const requests = requestsOf(tokenBucket({ limit: 10, window: '1s' }))
  for (const verb of ['peek', 'refund', 'penalize', 'block', 'reset', 'cancel', 'release', 'heartbeat'] as const) {
    assert.equal(undoingOf(verb, requests, answerTo(requests)), undefined)
  }
})
