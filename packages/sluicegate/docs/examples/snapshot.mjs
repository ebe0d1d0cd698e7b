// A restart that keeps what was spent.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, fixedWindow, restoreLimiter } from 'sluicegate'

const folder = mkdtempSync(join(tmpdir(), 'limits-'))
const file = join(folder, 'limits.bin')

const before = createLimiter(fixedWindow({ limit: 1_000, window: 'month' }))
before.take('acme', 400)
writeFileSync(file, before.snapshot())
before.close()

// The next process:
const limiter = restoreLimiter(readFileSync(file))
console.log(limiter.policy.name)
console.log(limiter.take('acme', 1).remaining)

rmSync(folder, { recursive: true })

// Prints:
//   fixed-window-1000-month
//   599
