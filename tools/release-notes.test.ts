import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releaseNotes } from './release-notes.js'

const CHANGELOG = `# Changelog

## [Unreleased]

## [0.2.0] - 2026-02-01

### Added

- A thing.

## [0.1.0] - 2026-01-01

- The first.
`

test('the notes of a release are the section of its version', () => {
  assert.equal(releaseNotes(CHANGELOG, '0.2.0'), '### Added\n\n- A thing.\n')
  assert.equal(releaseNotes(CHANGELOG, '0.1.0'), '- The first.\n')
})

test('a version without a section, and an empty one, have no notes', () => {
  assert.throws(() => releaseNotes(CHANGELOG, '0.3.0'), /no section "## \[0\.3\.0\]"/)
  assert.throws(() => releaseNotes(CHANGELOG, 'Unreleased'), /says nothing/)
})
