import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { publicApi } from './public-api.js'

/** The published packages and where the public API of each is recorded. */
const RECORDS = [
  { folder: 'packages/sluicegate', record: 'tools/public-api/sluicegate.txt' },
  { folder: 'packages/server', record: 'tools/public-api/sluicegate-server.txt' },
] as const
const FOUND = '.cache/public-api'

/** Packages whose exports or types differ from the recorded ones. */
export function checkPublicApi(): string[] {
  return RECORDS.flatMap(({ folder, record }) => apiFaults(record, publicApi(folder)))
}

/** What changed, line by line, and how to accept it. */
export function apiFaults(record: string, api: string, scratch = FOUND): string[] {
  if (existsSync(record) && readFileSync(record, 'utf8') === api) return []
  const found = `${scratch}/${record.split('/').at(-1)}`
  write(found, api)
  const recorded = existsSync(record) ? record : '/dev/null'
  const { stdout } = spawnSync('git', ['diff', '--no-index', '--no-color', '--unified=2', recorded, found], { encoding: 'utf8' })
  // Without the head, which names the scratch file.
  const changes = stdout.slice(Math.max(0, stdout.indexOf('\n@@ ') + 1))
  return [
    `The public API differs from ${record} (- recorded, + built):\n\n${changes}
If the change is meant, run "npm run api", read the diff and commit it. A removal or a narrower type breaks users: CHANGELOG.md has to say so.`,
  ]
}

/** Records the public API as it is now. */
export function recordPublicApi(): void {
  for (const { folder, record } of RECORDS) write(record, publicApi(folder))
}

function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
