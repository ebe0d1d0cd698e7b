import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LateAnswers } from './late-answers.js'

const LEASE_US = 100_000

test('answers that are late for as long as ten leases are warned of, with what to do', () => {
  const warnings: string[] = []
  const late = new LateAnswers('raise it', (message) => warnings.push(message))
  for (let us = 0; us <= 10 * LEASE_US; us += LEASE_US / 2) late.answered(true, us, LEASE_US)
  assert.equal(late.count, 21)
  assert.equal(warnings.length, 1)
  assert.match(warnings[0] as string, /longer than a lease of 100 ms.*raise it/)
})

test('a process that stood still, or an answer in time between, is counted and not warned of', () => {
  const warnings: string[] = []
  const late = new LateAnswers('raise it', (message) => warnings.push(message))
  for (let i = 0; i < 1000; i++) late.answered(true, 5, LEASE_US)
  for (let us = 0; us <= 50 * LEASE_US; us += LEASE_US) {
    late.answered(false, us, LEASE_US)
    late.answered(true, us, LEASE_US)
  }
  assert.deepEqual([late.count, warnings], [1051, []])
})
