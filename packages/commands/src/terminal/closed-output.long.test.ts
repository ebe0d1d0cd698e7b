import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type TestContext, test } from 'node:test'
import { configFile, serveProcess, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const YAML = 'listen: { port: 0 }\npolicies: { api: { algorithm: gcra, limit: 5, window: 1s } }\n'

/** A command whose output is closed: its exit code, and what it says about that. */
async function unread(t: TestContext, ...args: string[]): Promise<[code: number | null, err: string]> {
  const child = sluicegate(t, ...args)
  child.stdout.destroy()
  let err = ''
  child.stderr.on('data', (text) => {
    err += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  return [code, err]
}

test('every command ends quietly when its output is closed, and a service serves on and ends in order', async (t) => {
  const named = ['serve', 'check', 'take', 'top', 'replay', 'gate', 'load']
  const commands = named.map((command) => [command, '--help'])
  const service = await serveProcess(t, YAML)
  const { url } = service
  const all = [['--help'], ...commands, ['check', configFile(t, YAML)], ['top', '--url', url]]
  assert.deepEqual(await Promise.all(all.map((args) => unread(t, ...args))), Array(all.length).fill([0, '']))
  service.child.stdout.destroy()
  assert.equal((await fetch(`${service.url}/v1/take?policy=api&key=a`)).status, 200)
  assert.equal(await service.end('SIGINT'), 0)
})
