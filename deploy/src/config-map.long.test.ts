import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { ROOT } from './made-with.js'
import { eventually, running, servedAt } from './testing/running.js'

// A folder of configuration as the kubelet mounts a ConfigMap: each file is a link into `..data`, which is a link to a folder of one version.

const FOLDER = mkdtempSync(join(tmpdir(), 'sluicegate-config-map-'))
after(() => rmSync(FOLDER, { recursive: true, force: true }))

const policy = (limit: number): string => `policies:\n  per-user: { algorithm: token-bucket, limit: ${limit}, window: 24h }\n`

/** Writes a version beside the one in force, turns the link `..data` to it in one step, and removes the old one: what the kubelet does. */
function publish(version: number, text: string): void {
  mkdirSync(join(FOLDER, `..v${version}`))
  writeFileSync(join(FOLDER, `..v${version}`, 'policies.yaml'), text)
  symlinkSync(`..v${version}`, join(FOLDER, '..data_tmp'))
  renameSync(join(FOLDER, '..data_tmp'), join(FOLDER, '..data'))
  rmSync(join(FOLDER, `..v${version - 1}`), { recursive: true, force: true })
}

test('a ConfigMap that changes is in force without a restart, keys keep what they spent, and a faulty one changes nothing', async (t) => {
  publish(1, policy(100))
  symlinkSync('..data/policies.yaml', join(FOLDER, 'policies.yaml'))
  const program = [process.execPath, `${ROOT}packages/server/dist/main.js`, 'serve', '--config', FOLDER, '--http', '127.0.0.1:0', '--json']
  const service = running(t, program)
  const { http = '' } = await servedAt(service)
  const answer = async (path: string): Promise<{ limit: number; remaining: number }> => (await fetch(http + path)).json() as never
  const peek = (key: string) => answer(`/v1/peek?policy=per-user&key=${key}`)
  assert.equal((await answer('/v1/take?policy=per-user&key=alice&cost=10')).remaining, 90)

  publish(2, policy(50))
  await eventually(async () => (await peek('new')).limit === 50, 'the second version is in force', service.text)
  assert.equal((await peek('alice')).remaining, 40)

  publish(3, 'policies:\n  per-user: { algorithm: token-buckets, limit: 7, window: 24h }\n')
  await service.printed(/did you mean/)
  assert.deepEqual([(await peek('new')).limit, (await peek('alice')).remaining], [50, 40])

  publish(4, policy(60))
  await eventually(async () => (await peek('new')).limit === 60, 'the fourth version is in force', service.text)
  assert.equal((await peek('alice')).remaining, 50)
  assert.equal(service.child.exitCode, null)
})
