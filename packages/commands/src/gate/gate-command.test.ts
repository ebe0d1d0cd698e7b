import assert from 'node:assert/strict'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { everyNth, longTest, RedisProcess, until } from 'sluicegate-testkit'
import { atOnce, runService } from 'sluicegate-testkit/service/running-service.js'
import { ended, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-gate-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

function lines(key: string, requests: number, at: Date = new Date(), bytes = 1): string {
  const time = `${String(at.getUTCDate()).padStart(2, '0')}/${at.toUTCString().slice(8, 11)}/${at.getUTCFullYear()}:${at.toISOString().slice(11, 19)} +0000`
  return `${key} - - [${time}] "GET / HTTP/1.1" 200 ${bytes}\n`.repeat(requests)
}

/** What the events of the output say, by key. */
function eventsIn(
  stdout: string,
): { readonly event: string; readonly key?: string; readonly verdict?: string; readonly stats?: { records: number } }[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
}

function textOf(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

describe('a log that has ended', () => {
  test('a run that fails leaves the files of an earlier one as they are', async (t) => {
    const at = folder(t)
    const deny = join(at, 'deny')
    writeFileSync(deny, '192.0.2.1\n')
    writeFileSync(join(at, 'log'), 'no line\n'.repeat(3))
    for (const log of [join(at, 'log'), join(at, 'missing')]) {
      const { code } = await ended(sluicegate(t, 'gate', '--follow', log, '--once', '--block', '10', '--deny-list', deny))
      assert.deepEqual([code, textOf(deny)], [1, '192.0.2.1\n'])
    }
  })

  test('verdicts go by the times of the log, and a dry run writes nothing', async (t) => {
    const at = folder(t)
    const day = new Date(Date.UTC(2026, 9, 10, 12))
    const later = new Date(day.getTime() + 60_000)
    writeFileSync(join(at, 'log'), `${lines('192.0.2.7', 30, day)}${lines('192.0.2.8', 10, day)}${lines('192.0.2.9', 5, later)}no line\n`)
    const files = ['--nginx-map', join(at, 'map'), '--deny-list', join(at, 'deny'), '--reload', `touch ${join(at, 'ran')}`]
    const args = [
      '--follow',
      join(at, 'log'),
      '--once',
      '--dry-run',
      '--window',
      '10s',
      '--flag',
      '9',
      '--block',
      '20 for 20s',
      '--json',
      ...files,
    ]
    const { code, out: stdout, err: stderr } = await ended(sluicegate(t, 'gate', ...args))
    assert.equal(code, 0, stderr)
    const events = eventsIn(stdout)
    assert.deepEqual(
      events.filter(({ event }) => event === 'verdict').map(({ key, verdict }) => [key, verdict]),
      [
        ['192.0.2.7', 'flag'],
        ['192.0.2.7', 'block'],
        ['192.0.2.8', 'flag'],
        ['192.0.2.7', 'pass'],
        ['192.0.2.8', 'pass'],
      ],
    )
    const summary = events.at(-1) as unknown as Record<string, unknown>
    assert.deepEqual([summary.event, summary.lines, summary.unreadable, summary.written], ['summary', 46, 1, 0])
    for (const name of ['map', 'deny', 'ran']) assert.ok(!existsSync(join(at, name)), name)
  })

  test('a line of a wild time, and times ahead of now, block no honest client', async (t) => {
    const at = folder(t)
    // Times without a zone that the machine has ahead of UTC, and such that are long past.
    for (const startMs of [Date.now() + 7_000_000, Date.now() - 7_000_000]) {
      const honest = Array.from({ length: 600 }, (_, i) => lines('192.0.2.7', 1, new Date(startMs + i * 1_000)))
      const wild = lines('192.0.2.9', 1, new Date(Date.UTC(2200, 0)))
      const attack = lines('192.0.2.8', 90, new Date(startMs + 599_000))
      writeFileSync(join(at, 'log'), honest.toSpliced(300, 0, wild).join('') + attack)
      const args = ['--once', '--window', '1m', '--block', '80 for 1d', '--deny-list', join(at, 'deny'), '--json']
      const { code, out, err } = await ended(sluicegate(t, 'gate', '--follow', join(at, 'log'), ...args))
      assert.equal(code, 0, err)
      assert.equal(textOf(join(at, 'deny')), '192.0.2.8\n')
      const summary = eventsIn(out).at(-1) as unknown as { wild: number; stats: { records: number; late: number } }
      assert.deepEqual([summary.wild, summary.stats.records, summary.stats.late], [1, 691, 0])
    }
  })

  longTest('a cost is read from the line, and other requests are left out', async (t) => {
    const at = folder(t)
    writeFileSync(join(at, 'log'), `${lines('192.0.2.7', 3, new Date(), 400)}${lines('192.0.2.8', 100, new Date(), 1)}`)
    const args = ['--follow', join(at, 'log'), '--once', '--block', '1000', '--cost', '$body_bytes_sent', '--match', 'GET /*', '--json']
    const { out: stdout } = await ended(sluicegate(t, 'gate', ...args))
    const verdicts = eventsIn(stdout).filter(({ event, verdict }) => event === 'verdict' && verdict !== 'pass')
    assert.deepEqual(
      verdicts.map(({ key }) => key),
      ['192.0.2.7'],
    )
  })

  longTest('a key cannot command the terminal', async (t) => {
    const at = folder(t)
    writeFileSync(join(at, 'log'), lines('\u001b[2J\u0007x', 20))
    const { out: stdout } = await ended(sluicegate(t, 'gate', '--follow', join(at, 'log'), '--once', '--block', '10'))
    assert.match(stdout, /\?\[2J\?x {2}block until/)
    assert.ok(!stdout.includes('\u001b'))
  })

  test('a client with many addresses of one network is found behind a prefix; a run without a key to count is an error', async (t) => {
    const at = folder(t)
    const many = Array.from({ length: 500 }, (_, i) => `Nov 18 11:02:00 web1 nginx: ${lines(`2001:db8:0:4217::${i.toString(16)}`, 10)}`)
    writeFileSync(join(at, 'log'), many.join('').replaceAll(/\n(?=2001)/g, '\nNov 18 11:02:00 web1 nginx: '))
    const gate = (...args: string[]) => ended(sluicegate(t, 'gate', '--once', '--block', '300', ...args))
    const { code, err } = await gate('--follow', join(at, 'log'), '--nginx-geo', join(at, 'geo'), '--deny-list', join(at, 'deny'))
    assert.equal(code, 0, err)
    assert.equal(textOf(join(at, 'deny')), '2001:db8:0:4200::/56\n')
    assert.ok(textOf(join(at, 'geo')).endsWith('2001:db8:0:4200::/56 block;\n'))
    writeFileSync(join(at, 'odd'), `what is this ${lines('192.0.2.7', 1)}`)
    const faults = await Promise.all([gate('--follow', join(at, 'odd')), gate('--follow', join(at, 'log'), '--key', '$remote_user')])
    assert.deepEqual(
      faults.map((fault) => fault.code),
      [1, 1],
    )
    assert.match(faults[0]?.err ?? '', /none of 1 lines could be read; give the format/)
    assert.match(faults[1]?.err ?? '', /no line has a key: \$remote_user is empty in 5000 requests/)
  })

  test('connections of one client are one key, whatever port a log of Envoy names, and those of IPv6 go by network', async (t) => {
    const at = folder(t)
    const line = (address: string): string =>
      `${JSON.stringify({ start_time: new Date().toISOString(), downstream_remote_address: address, response_code: 200 })}\n`
    const ports = Array.from({ length: 400 }, (_, i) => 40_000 + i)
    const addresses = ports.flatMap((port) => [
      `203.0.113.7:${port}`,
      `[2001:db8:0:4217::${port.toString(16)}]:${port}`,
      `[::ffff:203.0.113.9]:${port}`,
    ])
    writeFileSync(join(at, 'log'), addresses.map(line).join('') + line('203.0.113.8:40001'))
    const gate = sluicegate(t, 'gate', '--once', '--block', '300', '--follow', join(at, 'log'), '--deny-list', join(at, 'deny'))
    const { code, err } = await ended(gate)
    assert.equal(code, 0, err)
    assert.deepEqual(textOf(join(at, 'deny')).trimEnd().split('\n').sort(), ['2001:db8:0:4200::/56', '203.0.113.7', '203.0.113.9'])
  })

  const refused: readonly (readonly [what: string, args: readonly string[], reason: RegExp])[] = [
    ['nothing to follow', ['--block', '5'], /say what to follow/],
    ['no threshold', ['--follow', 'x'], /say when a key gets a verdict/],
    ['a threshold that is none', ['--follow', 'x', '--block', 'many'], /--block: "many" is no threshold/],
    ['thresholds out of order', ['--follow', 'x', '--block', '5', '--flag', '9'], /flag\.above: must be below 5/],
    ['a key without a variable', ['--follow', 'x', '--block', '5', '--key', 'all'], /names no variable/],
    ['a stream without a server', ['--stream', 'x', '--block', '5'], /needs both/],
    ['a service without a policy', ['--follow', 'x', '--block', '5', '--url', 'http://127.0.0.1:1'], /both --url and --policy/],
    ['a reload without a file', ['--follow', 'x', '--block', '5', '--reload', 'true'], /give --nginx-geo, --nginx-map or --deny-list/],
    ['a folder as a log', ['--follow', tmpdir(), '--once', '--block', '5'], /no regular file|EISDIR/],
    [
      'a file in a folder that does not exist',
      ['--follow', 'x', '--once', '--block', '5', '--deny-list', '/does/not/exist'],
      /is in a folder that does not exist/,
    ],
  ]
  for (const [i, [what, args, reason]] of refused.entries()) {
    everyNth(i, 10)(`${what} is refused`, async (t) => {
      const { code, err: stderr } = await ended(sluicegate(t, 'gate', ...args))
      assert.match(stderr, reason)
      assert.ok(code === 1 || code === 2)
      assert.ok(!stderr.includes('    at '), 'no stack')
    })
  }
})

describe('a log that grows', () => {
  test('an abuser comes onto the lists, through a rotation, and the lists are empty at the end', async (t) => {
    const at = folder(t)
    const [log, map, deny, ran] = ['log', 'map', 'deny', 'ran'].map((name) => join(at, name)) as [string, string, string, string]
    writeFileSync(log, lines('192.0.2.1', 500))
    writeFileSync(map, '"192.0.2.99" block;\n')
    const child = sluicegate(
      t,
      'gate',
      ...['--follow', log, '--interval', '20ms', '--window', '1m', '--flag', '5', '--block', '20 for 1h'],
      ...['--nginx-map', map, '--deny-list', deny, '--reload', `echo x >> ${ran}`, '--reload-every', '20ms'],
    )
    const end = ended(child)
    await until('the file of an earlier run is emptied', () => textOf(map) === '# Written by sluicegate gate.\n')
    await until('the command has run', () => textOf(ran) !== '')
    appendFileSync(log, lines('192.0.2.7', 15))
    renameSync(log, `${log}.1`)
    writeFileSync(log, lines('192.0.2.7', 15) + lines('192.0.2.8', 10))
    await until('the abuser is denied', () => textOf(deny) === '192.0.2.7\n')
    // Both files are written before the command runs, one after the other.
    await until('the map has both', () => textOf(map).split('\n').slice(1).join('\n') === '"\\\\192.0.2.7" block;\n"\\\\192.0.2.8" flag;\n')
    await until('the command has run again', () => textOf(ran).split('\n').length > 2)
    child.kill('SIGTERM')
    const { code, out: stdout, err: stderr } = await end
    assert.equal(code, 0, stderr)
    assert.match(stdout, /192\.0\.2\.7 {2}block until/)
    assert.ok(!stdout.includes('192.0.2.1 '), 'what was there before is not read')
    assert.deepEqual([textOf(deny), textOf(map)], ['', '# Written by sluicegate gate.\n'])
  })

  test('a log that cannot be read for a while, and lines of no format, end nothing', async (t) => {
    const at = folder(t)
    const [log, deny] = [join(at, 'log'), join(at, 'deny')]
    writeFileSync(log, '')
    const child = sluicegate(
      t,
      'gate',
      ...['--follow', log, '--interval', '10ms', '--block', '5', '--deny-list', deny, '--reload-every', '10ms'],
    )
    const end = ended(child)
    let stderr = ''
    child.stderr.on('data', (text) => {
      stderr += text
    })
    await until('it follows', () => existsSync(deny))
    rmSync(log)
    mkdirSync(log)
    await until('the fault is reported', () => /no regular file|EISDIR/.test(stderr))
    rmSync(log, { recursive: true })
    writeFileSync(log, 'no line of any format\n'.repeat(150))
    await until('the format is asked for', () => stderr.includes('give the format with --format'))
    appendFileSync(log, lines('192.0.2.7', 10))
    await until('the abuser is denied', () => textOf(deny) === '192.0.2.7\n')
    child.kill('SIGTERM')
    assert.equal((await end).code, 0)
  })

  longTest('a log whose times are hours behind is reported', async (t) => {
    const log = join(folder(t), 'log')
    writeFileSync(log, '')
    const child = sluicegate(t, 'gate', '--follow', log, '--from-start', '--interval', '10ms', '--block', '5', '--json')
    const end = ended(child)
    let stdout = ''
    child.stdout.on('data', (text) => {
      stdout += text
    })
    await until('it follows', () => stdout.includes('"summary"'))
    appendFileSync(log, lines('192.0.2.7', 3, new Date(Date.now() - 5 * 3_600_000)))
    await until('it has read them', () => stdout.includes('"lines":3'))
    child.kill('SIGTERM')
    assert.match((await end).err, /new records are 1[78]\d{3} s behind the clock/)
  })

  longTest('a service that does not answer and a command that does not end hold up no list', async (t) => {
    const at = folder(t)
    const [log, deny, map] = [join(at, 'log'), join(at, 'deny'), join(at, 'map')]
    writeFileSync(log, '')
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    t.after(() => {
      silent.closeAllConnections()
      silent.close()
    })
    const child = sluicegate(
      t,
      'gate',
      ...['--follow', log, '--interval', '10ms', '--window', '1m', '--block', '5', '--deny-list', deny, '--nginx-map', map],
      ...['--reload-every', '10ms', '--url', `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, '--policy', 'p', '--json'],
    )
    let stdout = ''
    child.stdout.on('data', (text) => {
      stdout += text
    })
    await until('it follows', () => existsSync(map))
    appendFileSync(log, lines('192.0.2.7', 10))
    await until('the first is denied', () => textOf(deny) === '192.0.2.7\n')
    appendFileSync(log, lines('192.0.2.8', 10))
    await until('the second is denied while the service is silent', () => textOf(deny) === '192.0.2.7\n192.0.2.8\n')
    await until('summaries go on', () => stdout.split('"summary"').length > 3)
    child.kill('SIGKILL')
    await once(child, 'close')
  })

  longTest('a command that fails is reported once, and tried again', async (t) => {
    const at = folder(t)
    const log = join(at, 'log')
    const child = sluicegate(
      t,
      'gate',
      ...['--follow', log, '--interval', '10ms', '--block', '5', '--deny-list', join(at, 'deny'), '--reload-every', '10ms'],
      ...['--reload', `test -e ${join(at, 'ready')} && echo x >> ${join(at, 'ran')} || { echo not ready >&2; exit 3; }`],
    )
    const end = ended(child)
    let stderr = ''
    child.stderr.on('data', (text) => {
      stderr += text
    })
    await until('the fault is reported', () => stderr.includes('ended with 3: not ready'))
    writeFileSync(join(at, 'ready'), '')
    await until('it has run', () => textOf(join(at, 'ran')) === 'x\n')
    child.kill('SIGTERM')
    assert.equal((await end).code, 0)
    assert.equal(stderr.split('not ready').length, 2 + (stderr.includes('not ready >&2') ? 1 : 0))
  })
})

test('a running service blocks and charges the keys, for as long as the verdicts last', async (t) => {
  const at = folder(t)
  const service = await runService(
    t,
    `listen: { port: 0 }\npolicies: { per-client: { algorithm: token-bucket, limit: 100, window: 1h } }\ntokens: [{ name: gate, secret: gate-token-of-this-test-1234567890, scope: admin }]\n`,
  )
  const log = join(at, 'log')
  writeFileSync(join(at, 'token'), 'gate-token-of-this-test-1234567890\n')
  writeFileSync(log, '')
  const child = sluicegate(
    t,
    'gate',
    ...['--follow', log, '--from-start', '--interval', '20ms', '--window', '1m', '--throttle', '10', '--block', '20 for 1h'],
    ...['--url', service.url, '--policy', 'per-client', '--token-file', join(at, 'token'), '--penalty', '40', '--json'],
  )
  const end = ended(child)
  appendFileSync(log, lines('192.0.2.7', 25) + lines('192.0.2.8', 15) + lines('192.0.2.9', 5))
  const policy = service.engine.policy('per-client')
  const peek = (key: string) => atOnce(policy?.peek(key, 1))
  await until('the abuser is blocked', () => !peek('192.0.2.7').allowed)
  await until('the other is charged', () => peek('192.0.2.8').remaining === 60)
  const { retryAfterMs } = peek('192.0.2.7') as unknown as { retryAfterMs: number }
  assert.ok(retryAfterMs > 3_500_000 && retryAfterMs <= 3_600_000, `${retryAfterMs}`)
  child.kill('SIGINT')
  const { code, out: stdout } = await end
  assert.equal(code, 0)
  assert.equal(peek('192.0.2.9').remaining, 100)
  const summary = eventsIn(stdout).at(-1) as unknown as { written: number; failed: number }
  assert.deepEqual([summary.written, summary.failed], [2, 0])
})

longTest(
  'records of a Redis stream are counted, also after the stream was begun anew, and entries without a key are left out',
  async (t) => {
    await using redis = await RedisProcess.start()
    const at = folder(t)
    const deny = join(at, 'deny')
    const add = async (key: string, entries: number): Promise<void> => {
      for (let i = 0; i < entries; i++) await redis.ask('XADD', 'requests', '*', 'key', key, 'cost', '10')
    }
    await add('192.0.2.1', 3)
    const child = sluicegate(
      t,
      'gate',
      ...['--redis', redis.url, '--stream', 'requests', '--interval', '20ms', '--window', '1m', '--block', '25 for 1h'],
      ...['--deny-list', deny, '--reload-every', '20ms', '--json'],
    )
    const end = ended(child)
    await until('it reads', async () => (await redis.callsOf('xread')) > 0)
    await add('192.0.2.7', 3)
    await redis.ask('XADD', 'requests', '*', 'other', 'x')
    await redis.ask('XADD', 'requests', '*', 'key', '192.0.2.8', 'cost', '-5')
    await until('the abuser is denied', () => textOf(deny) === '192.0.2.7\n')
    const readBefore = await redis.callsOf('xread')
    await until('it has read the others', async () => (await redis.callsOf('xread')) > readBefore + 2)
    await redis.ask('DEL', 'requests')
    // On a clock that is behind: its ids are before the last one that was read.
    for (let i = 1; i <= 3; i++) await redis.ask('XADD', 'requests', `${i}-1`, 'key', '192.0.2.9', 'cost', '10')
    const reads = await redis.callsOf('xread')
    await until('it reads on', async () => (await redis.callsOf('xread')) > reads + 3)
    await add('192.0.2.10', 3)
    await until('the next one is denied, too', () => textOf(deny) === '192.0.2.10\n192.0.2.7\n')
    child.kill('SIGTERM')
    const { code, out: stdout, err: stderr } = await end
    assert.equal(code, 0, stderr)
    const summary = eventsIn(stdout).at(-1) as unknown as { unreadable: number; lines: number; stats: { records: number } }
    // Three entries of the first year are before the window.
    assert.deepEqual([summary.unreadable, summary.lines, summary.stats.records], [2, 11, 6])
    assert.ok(!stdout.includes('192.0.2.1"'), 'what was there before is not read')
  },
)
