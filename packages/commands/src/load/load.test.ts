import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readConfig } from 'sluicegate-config/read-config.js'
import { everyNth, IS_LONG_RUN, longTest, RedisProcess, shortOrLong } from 'sluicegate-testkit'
import { runService } from 'sluicegate-testkit/service/running-service.js'
import { configFile, type Ended, ended, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'
import type { LoadResult } from './load-result.js'

const POLICY = 'api: { algorithm: token-bucket, limit: 100, window: 1h, burst: 100 }'
const SERVED = `
listen: { http: 127.0.0.1:0, resp: 127.0.0.1:0, grpc: 127.0.0.1:0 }
policies: { ${POLICY} }
`
const ENVOY = `
domain: web
descriptors:
  - { key: user, rate_limit: { unit: hour, requests_per_unit: 100 } }
`

const run = (t: TestContext, ...args: string[]): Promise<Ended> => ended(sluicegate(t, 'load', ...args))

/** 300 requests of one key in half a second. */
async function measured(t: TestContext, ...args: string[]): Promise<LoadResult> {
  const { out, err } = await run(t, ...args, '--keys', 'hot', '--rate', '600', '--duration', '500ms', '--grace', '20s', '--json')
  try {
    return JSON.parse(out) as LoadResult
  } catch {
    assert.fail(err)
  }
}

function assertCounts({ sent, allowed, denied, errors, unanswered, errorTexts }: LoadResult): void {
  assert.deepEqual(
    { sent, allowed, denied, errors, unanswered, errorTexts },
    {
      sent: 300,
      allowed: 100,
      denied: 200,
      errors: 0,
      unanswered: 0,
      errorTexts: {},
    },
  )
}

// In a short run the others have HTTP and RESP.
for (const [i, protocol] of (['grpc', 'http', 'resp'] as const).entries()) {
  everyNth(i, 3)(`a service admits exactly its burst over ${protocol}`, async (t) => {
    const { urls } = await runService(t, SERVED)
    const url = (urls.get(protocol) as string).replace(/^\w+:\/\//, `${protocol}://`)
    assertCounts(await measured(t, url, '--policy', 'api'))
  })
}

longTest('processes share the load, and their counts add up', async (t) => {
  const { url } = await runService(t, SERVED)
  assertCounts(await measured(t, url, '--policy', 'api', '--processes', '3'))
})

longTest('a warm-up is sent and not measured, by one process and by several', async (t) => {
  const { url, engine } = await runService(t, SERVED)
  const { counts } = engine.policy('api') ?? assert.fail()
  for (const processes of IS_LONG_RUN ? ['1', '2'] : ['2']) {
    const before = counts.allowed + counts.denied
    const { sent, allowed, denied } = await measured(t, url, '--policy', 'api', '--warm-up', '250ms', '--processes', processes)
    assert.deepEqual([sent, allowed + denied], [300, 300])
    // What a busy machine has not sent by the end of the warm-up is left out.
    const taken = counts.allowed + counts.denied - before
    assert.ok(taken > 300 && taken <= 450, String(taken))
  }
})

longTest('CL.THROTTLE takes the rate of the command line', async (t) => {
  const { urls } = await runService(t, SERVED)
  const url = (urls.get('resp') as string).replace(/^\w+:\/\//, 'resp://')
  assertCounts(await measured(t, url, '--throttle', '99 100 3600'))
})

longTest('ShouldRateLimit counts a descriptor', async (t) => {
  const folder = dirname(configFile(t, SERVED))
  writeFileSync(join(folder, 'rules.yaml'), ENVOY)
  const { urls } = await runService(t, readConfig(folder))
  const url = (urls.get('grpc') as string).replace(/^\w+:\/\//, 'grpc://')
  assertCounts(await measured(t, url, '--domain', 'web', '--descriptor', 'user={key}'))
})

longTest('the library in memory admits exactly the burst', async (t) => {
  assertCounts(await measured(t, 'memory', '--config', configFile(t, `policies: { ${POLICY} }`)))
})

longTest('the library over Redis admits exactly the burst', async (t) => {
  await using server = await RedisProcess.start()
  // Exact and patient: on a busy machine a lease may end before all its tokens are asked for.
  const storage = `{ redis: { url: "${server.url}", mode: exact, timeout: 20s } }`
  assertCounts(await measured(t, server.url, '--config', configFile(t, `policies: { ${POLICY} }\nstorage: ${storage}`)))
})

longTest('a stall of the server shows in the percentiles from the intended start', async (t) => {
  let answered = 0
  const server = createServer((_, response) => {
    answered++
    // One pause of 400 ms, in which nothing is answered.
    if (answered === 100) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 400)
    response.end('{}')
  }).listen(0, '127.0.0.1')
  t.after(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/items?user={key}`
  const { out } = await run(t, url, '--rate', '500', '--duration', '1s', '--connections', '1', '--json')
  const { sent, allowed, latencyMs, serviceMs } = JSON.parse(out) as LoadResult
  assert.deepEqual({ sent, allowed }, { sent: 500, allowed: 500 })
  // 200 of 500 requests were due during the pause: they waited 200 ms on average. One alone was being served.
  assert.ok(latencyMs.p90 > 250, `90 % within ${latencyMs.p90} ms of the intended start`)
  assert.ok(latencyMs.max >= 400 && serviceMs.max >= 400)
})

longTest('a server that never answers counts as unanswered, with the time until the end', async (t) => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/{key}`
  const { out } = await run(t, url, '--rate', '100', '--duration', '200ms', '--grace', '300ms', '--json')
  const { sent, unanswered, latencyMs } = JSON.parse(out) as LoadResult
  assert.deepEqual({ sent, unanswered }, { sent: 20, unanswered: 20 })
  assert.ok(latencyMs.p50 >= 300)
})

longTest('Ctrl-C prints what was measured', async (t) => {
  const { url } = await runService(t, SERVED)
  for (const processes of IS_LONG_RUN ? ['1', '2'] : ['1']) {
    const child = sluicegate(t, 'load', url, '--policy', 'api', '--duration', '1h', '--rate', '100', '--processes', processes, '--json')
    let out = ''
    child.stdout.on('data', (text) => {
      out += text
    })
    let err = ''
    // Once: a second SIGINT ends the command without a result, and the last line of progress comes after the first.
    let isInterrupted = false
    child.stderr.on('data', (text) => {
      err += text
      if (isInterrupted || !/1 s {2}\d+ sent/.test(err)) return
      isInterrupted = true
      child.kill('SIGINT')
    })
    const [code] = await once(child, 'close')
    const { sent, allowed, denied, seconds } = JSON.parse(out) as LoadResult
    assert.equal(code, 0)
    assert.ok(sent >= 100 && sent === allowed + denied && seconds < 60, out)
  }
})

test('a report is one HTML file, and the seed repeats the keys', async (t) => {
  const file = configFile(t, `policies: { ${POLICY} }`)
  const args = [
    'memory',
    '--config',
    file,
    '--keys',
    'zipf:50',
    '--rate',
    '1000',
    '--duration',
    '200ms',
    '--seed',
    '7',
    '--arrivals',
    'poisson',
  ]
  const keys = async (name: string): Promise<string[]> => {
    const { out, err } = await run(t, ...args, '--record', `${file}.${name}`, '--html', `${file}.html`)
    assert.match(err, /seed 7/)
    assert.match(out, /intended start/)
    return readFileSync(`${file}.${name}`, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split('\t')[3] as string)
  }
  assert.deepEqual(await keys('a'), await keys('b'))
  assert.match(readFileSync(`${file}.html`, 'utf8'), /^<!doctype html>[\s\S]*Answers per second/)
})

test('other machines are refused without --allow-remote', async (t) => {
  const urls = ['http://127.0.0.1.example.com', 'resp://example.com:6379', 'http://192.0.2.1:80', 'http://[2001:db8::1]']
  for (const url of urls.slice(0, shortOrLong(1, urls.length))) {
    const { code, err } = await run(t, url, '--policy', 'api')
    assert.equal(code, 2)
    assert.match(err, /is not this machine: give --allow-remote/)
  }
})

test('wrong options are reported with the option and the value', async (t) => {
  const cases: readonly (readonly [args: readonly string[], error: RegExp])[] = [
    [['ftp://127.0.0.1', '--policy', 'api'], /the target must be such as .* not "ftp:\/\/127.0.0.1"/],
    [['http://127.0.0.1:1', '--policy', 'api', '--rate', '0'], /--rate must be requests a second, from 0.001 .* not "0"/],
    [['http://127.0.0.1:1', '--policy', 'api', '--keys', 'zipf:0'], /--keys must be hot, uniform:N.* not "zipf:0"/],
    [['http://127.0.0.1:1'], /say which policy: --policy NAME/],
    [['http://127.0.0.1:1', '--policy', 'api', '--arrivals', 'ramp'], /ramp needs --to-rate/],
    [['memory'], /--config FILE/],
  ]
  // Each runs the command: a short run has the target.
  for (const [args, error] of cases.slice(0, shortOrLong(1, cases.length))) {
    const { code, err } = await run(t, ...args, '--duration', '100ms')
    assert.ok(code === 1 || code === 2)
    assert.match(err, error)
  }
})
