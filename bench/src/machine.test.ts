import assert from 'node:assert/strict'
import { test } from 'node:test'
import { disturbed, usage } from './machine.js'

const start = { atMs: 0, machineMs: 1_000, subjectMs: 500 }

test('what the subject itself used is no disturbance, on however many cores', () => {
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_300, subjectMs: 800 }, 0), false)
})

test('another process that used a sixth of a core makes a repeat void', () => {
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_180, subjectMs: 650 }, 0), true)
})

test('work on the core that a subject leaves free does not disturb it', () => {
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_300, subjectMs: 650 }, 1), false)
  assert.equal(disturbed(start, { atMs: 150, machineMs: 1_300, subjectMs: 600 }, 1), true)
})

test('two ticks of others are no evidence', () => {
  assert.equal(disturbed(start, { atMs: 50, machineMs: 1_070, subjectMs: 550 }, 0), false)
})

test('a reading counts what this very process has used', () => {
  const before = usage(process.pid)
  for (let i = 0; i < 1e8; i++) Math.random()
  const { machineMs, subjectMs } = usage(process.pid)
  assert.ok(machineMs > before.machineMs)
  assert.ok(process.platform !== 'linux' || subjectMs > before.subjectMs)
})
