import { readFileSync } from 'node:fs'
import { releaseNotes } from './shared-text.js'

// `npm run notes --silent -- 0.2.0`: prints the notes of that version, for its release.
process.stdout.write(releaseNotes(readFileSync('CHANGELOG.md', 'utf8'), process.argv[2] ?? 'Unreleased'))
