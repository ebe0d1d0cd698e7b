import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ServiceClient } from 'sluicegate-commands/service/service-client.js'
import { longTest, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { ended, MAIN, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const POLICIES = 'policies: { api: { algorithm: gcra, limit: 5, window: 1s } }\n'

/** A service on a socket, since it cannot say where it listens. */
async function serve(t: TestContext, output: 'full' | 'closed') {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const socket = join(folder, 'http.sock')
  const file = join(folder, 'gate.yaml')
  writeFileSync(file, `listen: { http: "unix:${socket}" }\nstop: { drain: 0s }\n${POLICIES}`)
  const full = openSync('/dev/full', 'w')
  const child = spawn(process.execPath, [MAIN, 'serve', '--config', file], {
    stdio: output === 'full' ? ['ignore', full, full] : ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  child.stdout?.destroy()
  child.stderr?.destroy()
  const client = new ServiceClient(`unix:${socket}`, undefined)
  const isReady = async (): Promise<boolean> =>
    client.get('/readyz').then(
      ({ status }) => status === 200,
      () => false,
    )
  await until('it is ready', isReady)
  return { child, client, file }
}

for (const output of ['full', 'closed'] as const) {
  test(`a service whose log and output are ${output} decides, reloads and ends in order, and counts what waits`, async (t) => {
    const { child, client, file } = await serve(t, output)
    const reloads = async (): Promise<number> => {
      const { body } = await client.get('/metrics')
      return seriesValue(readExposition(body), 'sluicegate_config_reloads_total', { result: 'failure' })
    }
    writeFileSync(file, 'policies: {}\n')
    child.kill('SIGHUP')
    await until('the reload has failed', async () => (await reloads()) > 0)
    assert.equal((await client.get('/v1/take?policy=api&key=a')).status, 200)
    const { body } = await client.get('/metrics')
    assert.ok(seriesValue(readExposition(body), 'sluicegate_log_waiting_lines') > 0)
    child.kill('SIGTERM')
    assert.deepEqual(await once(child, 'close'), [0, null])
  })
}

test('a gate whose output is closed reads a log once to its end, and writes its files', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [log, list] = [join(folder, 'access.log'), join(folder, 'deny.txt')]
  const [, day, month, year, time] = new Date().toUTCString().split(' ')
  writeFileSync(log, `203.0.113.9 - - [${day}/${month}/${year}:${time} +0000] "GET / HTTP/1.1" 200 5\n`.repeat(50))
  const args = ['gate', '--follow', log, '--once', '--block', '30 for 1h', '--deny-list', list]
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  child.stdout.destroy()
  let err = ''
  child.stderr.on('data', (text) => {
    err += text
  })
  assert.deepEqual(await once(child, 'close'), [0, null], err)
  assert.equal(readFileSync(list, 'utf8'), '203.0.113.9\n')
})

longTest('a command whose output is full says so and ends with 1', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const [config, log] = [join(folder, 'gate.yaml'), join(folder, 'access.log')]
  writeFileSync(config, POLICIES)
  writeFileSync(log, '203.0.113.9 - - [18/Nov/2024:16:55:37 +0000] "GET / HTTP/1.1" 200 5\n'.repeat(50))
  const full = openSync('/dev/full', 'w')
  const once30 = ['--once', '--block', '30']
  const cases = [
    { args: ['--help'] },
    { args: ['check', config] },
    { args: ['replay', log, '--config', config] },
    {
      args: ['gate', '--follow', log, ...once30, '--json'],
      what: /^sluicegate: \d+ lines could not be written: ENOSPC: no space left on device, write\n$/,
    },
  ]
  for (const { args, what = /^sluicegate: the output cannot be written: ENOSPC: no space left on device, write\n$/ } of cases) {
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', full, 'pipe'] })
    let err = ''
    child.stderr?.on('data', (text) => {
      err += text
    })
    assert.deepEqual(await once(child, 'close'), [1, null], `${args[0]}: ${err}`)
    assert.match(err, what, args[0])
  }
  for (const option of ['--html', '--denials']) {
    const { code, err } = await ended(sluicegate(t, 'replay', log, '--config', config, option, '/dev/full'))
    assert.ok(code === 1 && /^sluicegate: .*ENOSPC/.test(err) && !/ at /.test(err), `${option}: ${code} ${err}`)
  }
})
