import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { until } from 'sluicegate-testkit'
import { send, sendMany } from 'sluicegate-testkit/service/many-connections.js'
import { throttled } from 'sluicegate-testkit/service/running-service.js'
import { announcement, configFile, ended, serveProcess, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import { canSharePorts } from './child.js'

const YAML = `listen: { port: 0 }
threads: 2
policies:
  wide: { algorithm: token-bucket, limit: 200, window: 30d }
  tiered: { algorithm: token-bucket, limit: 10, window: 30d, tiers: { large: { limit: 100 } }, keys: { bob: large } }
  other: { algorithm: fixed-window, limit: 100000, window: year }
  jobs: { algorithm: concurrency, limit: 2, ttl: 60s }
  both: { all-of: [{ algorithm: gcra, limit: 50, window: 30d, burst: 50 }, { algorithm: fixed-window, limit: 80, window: year }] }
`

let isRefused = false

/** Runs a test where threads can share ports; elsewhere the first says what the service does instead. */
function testThreads(name: string, run: (t: TestContext) => Promise<void>): void {
  test(name, async (t) => {
    if (canSharePorts()) return run(t)
    if (isRefused) return
    isRefused = true
    const { code, err } = await ended(sluicegate(t, 'serve', '--config', configFile(t, YAML)))
    assert.equal(code, 1)
    assert.equal(
      err,
      `sluicegate: threads share a port from Node.js 22.12 on, and this is ${process.version}: use --processes 2, or a newer Node.js\n`,
    )
  })
}

test('a version of Node.js can share ports from 22.12 on', () => {
  assert.deepEqual(['20.20.2', '22.11.0', '22.12.0', '24.0.0'].map(canSharePorts), [false, false, true, true])
})

testThreads(
  'connections over all threads receive one budget exactly; permits, reservations, tiers and a reload are those of all threads',
  async (t) => {
    const path = configFile(t, YAML)
    const child = sluicegate(t, 'serve', '--config', path)
    const { url } = await announcement(child)
    assert.ok(readdirSync(`/proc/${child.pid}/task`).length > 3)
    const many = async (policy: string, key: string): Promise<object> =>
      Object.fromEntries(await sendMany(url, `/v1/take?policy=${policy}&key=${key}`, 32, 8))
    assert.deepEqual(await many('wide', 'alice'), { 200: 200, 429: 56 })
    assert.deepEqual(await many('tiered', 'bob'), { 200: 100, 429: 156 })
    assert.deepEqual(await many('both', 'alice'), { 200: 50, 429: 206 })
    const text = await (await fetch(`${url}/metrics`)).text()
    assert.match(text, /sluicegate_decisions_total\{policy="wide",outcome="allowed"\} 200\n/)
    assert.match(text, /sluicegate_keys\{policy="wide"\} 1\n/)
    for (let round = 0; round < 4; round++) {
      const { permit } = (await send(url, '/v1/take?policy=jobs&key=alice')).body
      assert.equal((await send(url, '/v1/heartbeat', { value: { permit } })).status, 200)
      assert.equal((await send(url, '/v1/release', { value: { permit } })).status, 200)
      const { reservation } = (await send(url, '/v1/reserve', { value: { policy: 'other', key: 'alice', cost: 100 } })).body
      assert.equal((await send(url, '/v1/settle', { value: { reservation, cost: 10 } })).status, 200)
    }
    assert.equal((await send(url, '/v1/peek?policy=other&key=alice')).body.remaining, 100_000 - 40)
    const { hold } = (await send(url, '/v1/open', { value: { policy: 'both', key: 'holder', expect: 30 } })).body
    for (let call = 1; call <= 4; call++) assert.equal((await send(url, '/v1/add', { value: { hold, cost: 5, call } })).body.used, 5 * call)
    assert.equal((await send(url, '/v1/close', { value: { hold, cost: 25 } })).body.used, 25)
    assert.equal((await send(url, '/v1/peek?policy=both&key=holder')).body.remaining, 25)
    // Other numbers keep what was spent, another algorithm starts full, and a new policy has one budget.
    writeFileSync(
      path,
      YAML.replace('limit: 200', 'limit: 300')
        .replace('fixed-window, limit: 100000, window: year', 'sliding-window, limit: 100000, window: 30d')
        .concat('  fresh: { algorithm: gcra, limit: 20, window: 30d, burst: 20 }\n'),
    )
    child.kill('SIGHUP')
    await until('the reload is in force', async () => (await send(url, '/v1/peek?policy=fresh&key=a')).status === 200)
    assert.deepEqual(await many('fresh', 'a'), { 200: 20, 429: 236 })
    assert.deepEqual(await many('wide', 'alice'), { 200: 100, 429: 156 })
    for (let i = 0; i < 6; i++) assert.equal((await send(url, '/v1/peek?policy=other&key=alice')).body.remaining, 100_000)
  },
)

testThreads('SIGTERM ends all threads; the next start knows what was spent; a Unix socket is that of the first thread', async (t) => {
  const path = configFile(t, YAML)
  const resp = path.replace('gate.yaml', 'resp.sock')
  const flags = ['--snapshot', path.replace('gate.yaml', 'keys.snapshot'), '--resp', `unix:${resp}`, '--drain', '0']
  const first = await serveProcess(t, YAML, ...flags)
  const throttle = (): Promise<number> => throttled(resp, 'alice', '99', '1', '86400', '10')
  assert.equal(await throttle(), 90)
  assert.ok((await first.metric('process_resident_memory_bytes')) < 1.5 * first.rssBytes())
  await sendMany(first.url, '/v1/take?policy=wide&key=alice', 8, 2)
  assert.equal(await first.end('SIGTERM'), 0)
  const second = await serveProcess(t, YAML, ...flags)
  assert.equal((await send(second.url, '/v1/peek?policy=wide&key=alice')).body.remaining, 200 - 16)
  assert.equal(await throttle(), 80)
})

testThreads('an address that another program has is refused, though threads could share it', async (t) => {
  const { url } = await serveProcess(t, YAML)
  const yaml = YAML.replace('port: 0', `port: ${new URL(url).port}`)
  const { code, err } = await ended(sluicegate(t, 'serve', '--config', configFile(t, yaml)))
  assert.equal(code, 1)
  assert.match(err, /^sluicegate: \S+ is in use by another program: [^\n]*\n$/)
})
