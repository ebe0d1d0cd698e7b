import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { IS_LONG_RUN } from './long-test.js'

const FOLDER = fileURLToPath(new URL('../../examples', import.meta.url))
/** Far above the time of a program, for a busy machine. */
const MOST_MS = 180_000
// Compiled after this is: the tools generate sources of what the kit uses.
const TESTKIT = new URL('../../packages/testkit/dist/index.js', import.meta.url).href

interface Server {
  readonly url: string
  stop(): Promise<void>
}

const { RedisProcess } = (await import(TESTKIT)) as { readonly RedisProcess: { start(): Promise<Server> } }
const redis = await RedisProcess.start()
after(() => redis.stop())

const PROGRAMS = readdirSync(FOLDER).filter((file) => file.endsWith('.mjs'))

for (const program of PROGRAMS.filter((_, i) => IS_LONG_RUN || i % 10 === 0)) {
  test(`examples/${program} ends by itself and prints the output recorded at its end`, () => {
    const source = readFileSync(join(FOLDER, program), 'utf8')
    const env = { ...process.env, REDIS_URL: redis.url }
    const done = spawnSync(process.execPath, [join(FOLDER, program)], { encoding: 'utf8', timeout: MOST_MS, env })
    assert.equal(done.status, 0, done.stderr || String(done.error ?? done.signal))
    assert.equal(done.stdout, announced(source))
  })
}

test('the index of the examples names every program', () => {
  const index = readFileSync(join(FOLDER, 'README.md'), 'utf8')
  const missing = PROGRAMS.filter((program) => !index.includes(`](${program})`))
  assert.deepEqual(missing, [])
  assert.ok(PROGRAMS.length > 0)
})

/** The lines after `// Prints:`, which end the program. */
function announced(source: string): string {
  const [, lines] = source.split('\n// Prints:\n')
  assert.ok(lines, 'no comment "// Prints:" with the lines that it prints at the end')
  return lines.replaceAll(/^\/\/ {3}/gm, '')
}
