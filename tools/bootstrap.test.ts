import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

// The set-up is plain JavaScript, so that it runs before anything is compiled; it has no types to import.
const setup = (file: string) => import(new URL(`../setup/${file}`, import.meta.url).href)
const BOOTSTRAP = fileURLToPath(new URL('../bootstrap.mjs', import.meta.url))

test('an older Node.js is refused in one clear line', async () => {
  const { requireNode } = await setup('node-version.mjs')
  for (const old of ['18.20.4', '20.18.3'])
    assert.throws(() => requireNode('20.19.0', old), new RegExp(`needs Node.js 20.19.0 or newer; this is ${old}`))
  for (const fit of ['20.19.0', '20.20.2', '22.1.0']) assert.doesNotThrow(() => requireNode('20.19.0', fit))
})

test('a folder or a file chooses the tests below it, sources or compiled', async () => {
  const { chooseTests } = await setup('tests.mjs')
  assert.deepEqual(chooseTests(['tools/bootstrap.test.ts']).files, ['tools/dist/bootstrap.test.js'])
  assert.deepEqual(chooseTests(['tools/dist/bootstrap.test.js']).files, ['tools/dist/bootstrap.test.js'])
  const { files } = chooseTests(['tools/'])
  assert.ok(files.length > 1)
  assert.ok(files.every((file: string) => file.startsWith('tools/dist/')))
  assert.ok(chooseTests([]).files.length > files.length)
})

test('options go to Node.js, and do not narrow the choice of tests', async () => {
  const { chooseTests } = await setup('tests.mjs')
  assert.deepEqual(chooseTests(['--test-only']), { ...chooseTests([]), nodeOptions: ['--test-only'] })
})

test('a choice without tests is refused, instead of passing with none', async () => {
  const { chooseTests } = await setup('tests.mjs')
  assert.throws(() => chooseTests(['packages/nowhere']), /No test files below packages\/nowhere/)
})

test('an unknown task is one line and a failure', () => {
  const { status, stderr } = spawnSync(process.execPath, [BOOTSTRAP, 'tset'], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.equal(stderr.trim(), 'no task "tset"; there are build, start, test, prove, bench, bench:redis, chaos, check')
})

test('tests name the programs that they need, and no others', async () => {
  const { commandsFor } = await setup('system-packages.mjs')
  const needed = (...files: readonly string[]): string[] => commandsFor(files).map(({ command }: { command: string }) => command)
  assert.deepEqual(needed('packages/sluicegate/dist/redis/runners/cluster.test.js'), ['redis-server', 'redis-cli'])
  assert.deepEqual(needed('packages/sluicegate/dist/duration.test.js', 'tools/dist/bootstrap.test.js'), [])
  assert.ok(needed('packages/testkit/dist/servers/servers.test.js').includes('redis-server'))
})
