/**
 * A reporter for `node --test` that writes one JSON document at the end: the test files that failed, each failed test with its message,
 * and node's own counts. `failed-tests.mjs` reads it.
 */
export default async function* failedTests(events) {
  const files = []
  const failures = []
  const counts = {}
  for await (const { type, data } of events) {
    const error = data?.details?.error
    // The test of a whole file has the file's path as its name.
    if (type === 'test:complete' && error !== undefined && /\.m?js$/.test(data.name)) files.push(data.name)
    if (type === 'test:fail' && error?.failureType !== 'subtestsFailed') {
      failures.push({ name: data.name, file: data.file, message: (error?.cause?.stack ?? error?.cause ?? error?.message ?? '').toString() })
    }
    const [, name, count] = (type === 'test:diagnostic' && data.message.match(/^(tests|pass|fail|cancelled|skipped|todo) (\d+)$/)) || []
    if (name !== undefined) counts[name] = Number(count)
  }
  yield JSON.stringify({ files: [...new Set(files)], failures, counts })
}
