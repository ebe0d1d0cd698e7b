import { readFileSync } from 'node:fs'
import { isGroup } from './test-groups.mjs'

const IS_FILE = /\.m?js$/

/**
 * A reporter for `node --test` that writes one JSON document at the end: the test files that failed, each failed test with its message,
 * node's own counts, and how long each file took. Of a group of files, those count whose suites failed. `failed-tests.mjs` reads it.
 */
export default async function* failedTests(events) {
  const files = []
  const failures = []
  const counts = {}
  const seconds = {}
  for await (const { type, data } of events) {
    const error = data?.details?.error
    // The test of a whole file, or its suite in a group, has the file's path as its name.
    if (type === 'test:complete' && error !== undefined && IS_FILE.test(data.name)) files.push(data.name)
    // The suite of a file in a group has the time of its tests; of a file alone its tests are added up.
    if ((type === 'test:pass' || type === 'test:fail') && data.nesting === 0 && !isGroup(data.name)) {
      const file = IS_FILE.test(data.name) ? data.name : data.file
      seconds[file] = (seconds[file] ?? 0) + (data.name === data.file ? 0 : data.details.duration_ms / 1000)
    }
    if (type === 'test:fail' && error?.failureType !== 'subtestsFailed') {
      failures.push({ name: data.name, file: data.file, message: (error?.cause?.stack ?? error?.cause ?? error?.message ?? '').toString() })
    }
    const [, name, count] = (type === 'test:diagnostic' && data.message.match(/^(tests|pass|fail|cancelled|skipped|todo) (\d+)$/)) || []
    if (name !== undefined) counts[name] = Number(count)
  }
  yield JSON.stringify({ files: withoutFailedGroups([...new Set(files)]), failures, counts, seconds })
}

/** A group stays when it failed outside its files. */
function withoutFailedGroups(files) {
  return files.filter((file) => {
    if (!isGroup(file)) return true
    const text = readFileSync(file, 'utf8')
    return !files.some((other) => text.includes(`'${other}'`))
  })
}
