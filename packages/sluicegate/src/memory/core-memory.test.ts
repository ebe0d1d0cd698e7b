import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMemory, ENTRIES_PER_LINE, sectionAt } from './core-memory.js'
import { OpenCore } from './open-core.js'

const STRIDE = 24

test('a section is laid out as the core reads it', () => {
  const { address, lines, end } = sectionAt(1024, { maxKeys: 1000, stride: STRIDE })
  const core = new OpenCore(createMemory(end), address, {
    policyChanged: () => undefined,
    calendarWindowStart: () => 0,
    calendarWindowEnd: () => 0,
  })
  core.core.create(address, lines, false)
  const { entries } = core
  assert.equal(ENTRIES_PER_LINE, core.constant('LINE_SIZE') / core.constant('ENTRY_SIZE'))
  assert.equal(address % core.constant('DESCRIPTOR_SIZE'), 0)
  const used = core.constant('TABLE') + entries * (core.constant('ENTRY_SIZE') + STRIDE)
  assert.ok(end - address >= used && end - address < used + core.constant('DESCRIPTOR_SIZE'))
  assert.equal(core.firstExtensions(), address + used - entries * STRIDE)
})
