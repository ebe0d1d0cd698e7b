import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { createLimiter, manualClock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { everyNth, shortOrLong } from 'sluicegate-testkit'
import { MAIN } from 'sluicegate-testkit/service/sluicegate-process.js'
import { SeededRandom } from '../load/seeded-random.js'
import type { Denial } from './candidate.js'
import { type LogSource, openLog } from './log-source.js'
import { PeakRates } from './peak-rates.js'
import { Replay, type ReplayResult } from './replay.js'
import { KeyTemplate, RequestFilter } from './request-rule.js'
import { Timeline } from './timeline.js'

const START = Date.UTC(2026, 9, 10)

interface LoggedRequest {
  readonly atMs: number
  readonly key: string
  readonly request?: string
}

function lineOf({ atMs, key, request = 'GET / HTTP/1.1' }: LoggedRequest): string {
  return `${key} - - [${(atMs / 1_000).toFixed(3)}] "${request}" 200 1`
}

const FORMAT = '$remote_addr - - [$msec] "$request" $status $bytes'
const BY_ADDRESS = new KeyTemplate('$remote_addr')

/** @param log lines of {@link FORMAT}, or the bytes of a file whose format is known from them. */
function replayed(yamls: readonly string[], log: readonly string[] | Buffer, match?: string): { result: ReplayResult; denials: Denial[] } {
  const denials: Denial[] = []
  const rule = { key: BY_ADDRESS, filter: match === undefined ? undefined : new RequestFilter(match) }
  const candidates = yamls.map((yaml, i) => ({ name: `c${i}`, policies: parseConfig(yaml).policies, ruleOf: () => rule }))
  const format = Buffer.isBuffer(log) ? undefined : FORMAT
  const replay = new Replay({ candidates, format, key: BY_ADDRESS, onDenial: (denial) => denials.push(denial) })
  replay.write(Buffer.isBuffer(log) ? log : Buffer.from(log.join('\n')))
  replay.endOfFile()
  const result = replay.result()
  replay.close()
  return { result, denials }
}

const HEAD_OF_IIS = `#Software: Microsoft Internet Information Services 10.0
#Version: 1.0
#Date: 2026-10-10 13:55:36
#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) sc-status time-taken
`
const CLOUDFRONT = `#Version: 1.0
#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status x-forwarded-for
2026-10-10\t13:55:36\tFRA2-C1\t392\t2001:db8::1\tPOST\td1.cloudfront.net\t/login\t200\t-
2026-10-10\t13:55:38\tFRA2-C1\t392\t2001:db8::2\tGET\td1.cloudfront.net\t/\t200\t-
`

describe('columns that #Fields: names', () => {
  test('IIS, with other columns after a restart; CloudFront, with tabs; in UTF-16, too', () => {
    const iis = `${HEAD_OF_IIS}2026-10-10 13:55:36 10.0.0.1 POST /login a=1 443 - 192.0.2.7 Mozilla/5.0+(X11) 200 15
2026-10-10 13:55:37 10.0.0.1 GET / - 443 - 192.0.2.7 Mozilla/5.0+(X11) 200 15
#Software: Microsoft Internet Information Services 10.0
#Fields: date time c-ip cs-method cs-uri-stem
2026-10-10 13:55:39 192.0.2.7 POST /login
2026-10-10 13:55:40 192.0.2.7 POST /login
`
    const yaml = 'policies: { logins: { algorithm: fixed-window, limit: 1, window: day } }'
    for (const [text, lines, denied, last] of [
      [iis, 4, 2, '2026-10-10T13:55:40.000Z'],
      [`\ufeff${iis}`, 4, 2, '2026-10-10T13:55:40.000Z'],
      [CLOUDFRONT, 2, 0, '2026-10-10T13:55:38.000Z'],
    ] as const) {
      for (const encoding of ['utf8', 'utf16le'] as const) {
        if (encoding === 'utf16le' && !text.startsWith('\ufeff')) continue
        const { result } = replayed([yaml], Buffer.from(text, encoding), 'POST /login')
        const [policy] = result.candidates[0]?.policies ?? []
        assert.deepEqual([result.lines, result.unreadableLines, result.lastTime], [lines, 0, last])
        assert.deepEqual([policy?.requests, policy?.denied], [lines === 4 ? 3 : 1, denied])
      }
    }
  })

  test('columns of any name, of JavaScript too, are columns', () => {
    const yaml = 'policies: { p: { algorithm: fixed-window, limit: 1, window: day } }'
    const names = Object.getOwnPropertyNames(Object.prototype)
    const line = `2026-10-10 13:55:36 192.0.2.7 ${names.join(' ')}\n`
    const { result } = replayed([yaml], Buffer.from(`#Fields: date time c-ip ${names.join(' ')}\n${line}`))
    assert.deepEqual([result.lines, result.unreadableLines], [1, 0])
  })

  test('a log that names its columns before each line is read as fast as another', () => {
    const yaml = 'policies: { p: { algorithm: fixed-window, limit: 1, window: day } }'
    const lines = 10_000
    const log = Array.from({ length: lines }, (_, i) => `#Fields: date time c-ip x${i}\n2026-10-10 13:55:36 192.0.2.7 -\n`).join('')
    const startedMs = performance.now()
    const { result } = replayed([yaml], Buffer.from(log))
    const tookMs = performance.now() - startedMs
    assert.deepEqual([result.lines, result.unreadableLines], [lines, 0])
    // 0.5 MB and 2 ms for each line where each format has its own cache.
    assert.ok(tookMs < 5_000, `${Math.round(tookMs)} ms`)
  })

  test('a column that is needed and missing is named, and a line of a client is no list of columns', () => {
    const yaml = 'policies: { p: { algorithm: gcra, limit: 1, window: 1s } }'
    const withoutIp = Buffer.from(`${HEAD_OF_IIS.replace('c-ip ', '')}2026-10-10 13:55:36 10.0.0.1 GET / - 443 - Mozilla 200 15\n`)
    assert.throws(() => replayed([yaml], withoutIp), /the format has no \$remote_addr; it has \$date, \$time, \$s_ip/)
    const line = '192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1\n'
    const { result } = replayed([yaml], Buffer.from(`${line}#Fields: a b\n${line}`))
    assert.deepEqual([result.lines, result.unreadableLines, result.format], [3, 1, 'common'])
  })
})

function randomRequests(seed: number, length: number): LoggedRequest[] {
  const random = new SeededRandom(seed)
  let atMs = START
  return Array.from({ length }, () => {
    atMs += Math.floor(random.fraction() * 40)
    return { atMs, key: `10.0.0.${Math.floor(random.fraction() ** 3 * 12)}` }
  })
}

describe('a replay decides as the live limiter', () => {
  for (const [i, rule] of [
    '{ algorithm: token-bucket, limit: 20, window: 1s, burst: 30 }',
    '{ algorithm: gcra, limit: 7, window: 1s, burst: 3 }',
    '{ algorithm: fixed-window, limit: 20, window: 2s }',
    '{ algorithm: sliding-window, limit: 20, window: 2s }',
    '{ algorithm: sliding-log, limit: 20, window: 2s }',
    '{ algorithm: fixed-window, limit: 2000, window: day, time-zone: Europe/Rome }',
  ].entries())
    everyNth(i, 2)(rule, () => {
      const yaml = `policies: { p: ${rule} }`
      const requests = randomRequests(7, shortOrLong(2_500, 5_000))
      const clock = manualClock(START)
      const [config] = parseConfig(yaml).policies
      assert.ok(config)
      using limiter = createLimiter(config.policy, { clock })
      const expected: Denial[] = []
      for (const { atMs, key } of requests) {
        clock.set(atMs)
        const { allowed, retryAfterMs } = limiter.take(key)
        if (!allowed) expected.push({ time: new Date(atMs).toISOString(), config: 'c0', policy: 'p', key, retryAfterMs })
      }
      const { result, denials } = replayed([yaml], requests.map(lineOf))
      assert.ok(expected.length > 100)
      assert.deepEqual(denials, expected)
      const policy = result.candidates[0]?.policies[0]
      assert.equal(policy?.denied, expected.length)
      assert.equal(policy?.deniedKeys, new Set(expected.map(({ key }) => key)).size)
      assert.equal(policy?.firstDenial, expected[0]?.time)
    })
})

describe('what a replay counts', () => {
  const ONE_A_MINUTE = 'policies: { p: { algorithm: fixed-window, limit: 1, window: 1m } }'

  test('configurations side by side, and where they differ', () => {
    const two = ONE_A_MINUTE.replace('limit: 1', 'limit: 2')
    const lines = [0, 1, 2].map((i) => lineOf({ atMs: START + i, key: 'a' }))
    const { result } = replayed([ONE_A_MINUTE, two], lines)
    assert.deepEqual(
      result.candidates.map(({ allowed, denied }) => [allowed, denied]),
      [
        [1, 2],
        [2, 1],
      ],
    )
    assert.deepEqual(result.agreement, [
      { deniedBy: [], requests: 1 },
      { deniedBy: ['c0'], requests: 1 },
      { deniedBy: ['c0', 'c1'], requests: 1 },
    ])
    assert.deepEqual(result.timeline, { startMs: START, pointMs: 1_000, requests: [3], denied: [[2], [1]] })
  })

  test('a line whose time is earlier counts at the time of the line above', () => {
    const lines = [START + 60_000, START, START + 60_000].map((atMs) => lineOf({ atMs, key: 'a' }))
    const { result } = replayed([ONE_A_MINUTE], lines)
    assert.deepEqual([result.lateLines, result.latestByMs, result.candidates[0]?.denied], [1, 60_000, 2])
  })

  test('a line of a wild time is counted and changes nothing for the others; a clock that is set back is gone along with', () => {
    // One request a second, of which a limit of one in 2 s denies half.
    const yaml = 'policies: { own: { algorithm: gcra, limit: 1, window: 2s, burst: 1 } }'
    const honest = Array.from({ length: 600 }, (_, i) => lineOf({ atMs: START + i * 1_000, key: 'a' }))
    for (const [i, wildMs] of [Date.UTC(2200, 0), 946_684_800_000, START + 86_400_000].entries()) {
      const wild = lineOf({ atMs: wildMs, key: 'b' })
      const { result } = replayed([yaml], honest.toSpliced(300, 0, wild, wild).concat(i === 0 ? [wild] : []))
      const { allowed, denied } = result.candidates[0] ?? {}
      const extra = i === 0 ? 1 : 0
      assert.deepEqual([allowed, denied, result.wildLines, result.lateLines], [301 + extra, 301, 2 + extra, 0])
      assert.equal(result.lastTime, new Date(START + 599_000).toISOString())
    }
    const setBack = honest.map((line, i) => (i < 300 ? line : lineOf({ atMs: START + i * 1_000 - 3_600_000, key: 'a' })))
    const { result } = replayed([yaml], setBack)
    assert.deepEqual([result.candidates[0]?.allowed, result.wildLines, result.clockSteps, result.lateLines], [300, 0, 1, 0])
  })

  test('lines of a year that no clock reaches, and no others', () => {
    const yaml = 'policies: { own: { algorithm: gcra, limit: 1, window: 1s } }'
    const lines = ['01/Jan/9999:00:00:00 +0000', '01/Jan/2256:00:00:00 +0000', '01/Jan/2255:00:00:00 +0000']
    for (const [i, time] of ['9999-01-01T00:00:00Z', 99_999_999_999_999].entries()) {
      const log = [time, '2026-10-10T00:00:00Z'].map((each) => `${JSON.stringify({ time: each, remote_addr: 'a' })}\n`)
      const { result } = replayed([yaml], Buffer.from(log.join('')))
      assert.deepEqual([result.lines, result.unreadableLines], [2, 1], String(i))
    }
    const { result } = replayed([yaml], Buffer.from(lines.map((time) => `a - - [${time}] "GET / HTTP/1.1" 200 1\n`).join('')))
    assert.deepEqual([result.lines, result.unreadableLines, result.lastTime], [3, 2, '2255-01-01T00:00:00.000Z'])
  })

  test('unreadable lines, and requests that a rule does not count or that have no key', () => {
    const lines = [
      'broken',
      lineOf({ atMs: START, key: 'a', request: 'POST /login HTTP/1.1' }),
      lineOf({ atMs: START, key: 'a' }),
      lineOf({ atMs: START, key: '-', request: 'POST /login HTTP/1.1' }),
    ]
    const { result } = replayed([ONE_A_MINUTE], lines, 'POST /login')
    const policy = result.candidates[0]?.policies[0]
    assert.deepEqual([result.lines, result.unreadableLines, policy?.requests, policy?.withoutKey], [4, 1, 1, 1])
    assert.equal(result.candidates[0]?.allowed, 3)
  })

  test('the peaks of keys in windows of six lengths', () => {
    const peaks = new PeakRates()
    for (let i = 0; i < 100; i++) for (let n = 0; n <= i; n++) peaks.add(`key-${i}`, START + n * 100)
    const rows = Object.fromEntries(peaks.rows().map(({ window, peaks }) => [window, peaks]))
    assert.deepEqual(rows['1s'], [10, 10, 10, 10, 10, 10])
    assert.deepEqual(rows['1d'], [50, 90, 95, 99, 100, 100])
  })

  test('of too many keys a sample is kept that is fair to busy keys', () => {
    const peaks = new PeakRates(1_000)
    for (let i = 0; i < 20_000; i++) for (let n = 0; n < (i % 10 === 0 ? 5 : 1); n++) peaks.add(`key-${i}`, START)
    assert.ok(peaks.sampledKeys <= 1_000 && peaks.sampledKeys > 400, `${peaks.sampledKeys}`)
    const [median, , p95] = peaks.rows()[0]?.peaks ?? []
    assert.deepEqual([median, p95], [1, 5])
  })

  test('a timeline of any length has at most 720 points and loses no count', () => {
    const timeline = new Timeline(1)
    for (let i = 0; i < 10_000; i++) timeline.add(0, timeline.pointOf(START + i * 7_000))
    assert.ok(timeline.length <= 720)
    assert.equal(
      timeline.counts(0).reduce((sum, count) => sum + count),
      10_000,
    )
  })
})

test('keys of several variables never collide', () => {
  const template = new KeyTemplate('$a|$b')
  const keyOf = (a: string, b: string): string | undefined => template.keyOf({ timeMs: 0, value: (name) => (name === 'a' ? a : b) })
  assert.notEqual(keyOf('x|y', 'z'), keyOf('x', 'y|z'))
  assert.notEqual(keyOf('x\\', '|z'), keyOf('x\\|', 'z'))
  assert.equal(keyOf('x', ''), undefined)
  assert.throws(() => new KeyTemplate('all'), /names no variable/)
  assert.throws(() => new RequestFilter('login'), /no method and path/)
})

/** A folder for the length of a test. */
function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-replay-'))
  t.after(() => rmSync(path, { recursive: true }))
  return path
}

async function textOf({ stream }: LogSource): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

describe('sources', () => {
  const TEXT = 'line\n'.repeat(50_000)

  test('plain and gzip, also of several parts, are known by their first bytes', async (t) => {
    const at = folder(t)
    writeFileSync(join(at, 'plain'), TEXT)
    writeFileSync(join(at, 'packed'), Buffer.concat([gzipSync(TEXT), gzipSync(TEXT)]))
    assert.equal(await textOf(await openLog(join(at, 'plain'))), TEXT)
    assert.equal(await textOf(await openLog(join(at, 'packed'))), TEXT + TEXT)
  })

  test('damaged gzip and missing files are reported with their name', async (t) => {
    const file = join(folder(t), 'cut.gz')
    writeFileSync(file, gzipSync(TEXT).subarray(0, 50))
    await assert.rejects(async () => textOf(await openLog(file)), /cut\.gz: the gzip data is damaged/)
    await assert.rejects(openLog(`${file}.not`), /cut\.gz\.not: cannot be read: ENOENT/)
    await assert.rejects(openLog(folder(t)), /cannot be read: it is a folder/)
  })

  test('zstd', async (t) => {
    const at = folder(t)
    writeFileSync(join(at, 'plain'), TEXT)
    await promisify(execFile)('zstd', ['--quiet', join(at, 'plain')])
    assert.equal(await textOf(await openLog(join(at, 'plain.zst'))), TEXT)
    writeFileSync(join(at, 'cut.zst'), readFileSync(join(at, 'plain.zst')).subarray(0, 20))
    await assert.rejects(async () => textOf(await openLog(join(at, 'cut.zst'))), /cut\.zst|zstd/)
  })
})

describe('the command', () => {
  const run = promisify(execFile)

  test('prints a table or JSON, and writes a report and the denials', async (t) => {
    const at = folder(t)
    const file = (name: string): string => join(at, name)
    writeFileSync(file('one.yaml'), 'policies: { p: { algorithm: fixed-window, limit: 1, window: 1h } }')
    writeFileSync(file('two.yaml'), 'policies: { p: { algorithm: fixed-window, limit: 2, window: 1h } }')
    const key = '</script><b>\u001b[2J'
    const line = (i: number): string => `${key} - - [10/Oct/2026:13:55:0${i} +0000] "GET /a HTTP/1.1" 200 1\n`
    writeFileSync(file('log'), [0, 1, 2].map(line).join(''))
    const args = [
      'replay',
      '--config',
      file('one.yaml'),
      '--config',
      file('two.yaml'),
      '--html',
      file('r.html'),
      '--denials',
      file('d'),
      file('log'),
    ]

    const { stdout } = await run(process.execPath, [MAIN, ...args])
    assert.match(stdout, /one +p +fixed-window, 1 per 1h +\$remote_addr +3 +2 +66\.67/)
    assert.match(stdout, /one and two +1/)
    assert.ok(!stdout.includes('\u001b'), 'a key cannot write over the terminal')
    const { candidates } = JSON.parse((await run(process.execPath, [MAIN, ...args, '--json'])).stdout)
    assert.deepEqual(
      candidates.map(({ denied }: { denied: number }) => denied),
      [2, 1],
    )
    const denials = readFileSync(file('d'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text))
    assert.deepEqual(
      denials.map(({ config, key }) => [config, key]),
      [
        ['one', key],
        ['one', key],
        ['two', key],
      ],
    )
    const html = readFileSync(file('r.html'), 'utf8')
    assert.ok(html.includes('<title>Sluicegate replay</title>') && !html.includes('</script><b>'))
  })

  test('all addresses of an IPv6 network are one client, which --ipv6-subnet may change', async (t) => {
    const at = folder(t)
    writeFileSync(join(at, 'c.yaml'), 'policies: { p: { algorithm: fixed-window, limit: 300, window: 1h } }')
    const line = (i: number): string =>
      `Nov 18 11:02:00 web1 nginx: 2001:db8:0:42${(i % 16).toString(16)}0::${i.toString(16)} - - [10/Oct/2026:13:55:00 +0000] "GET / HTTP/1.1" 200 1\n`
    writeFileSync(join(at, 'log'), Array.from({ length: 5_000 }, (_, i) => line(i)).join(''))
    const denied = async (...args: string[]): Promise<number> => {
      const { stdout } = await run(process.execPath, [MAIN, 'replay', '--config', join(at, 'c.yaml'), '--json', ...args, join(at, 'log')])
      return JSON.parse(stdout).candidates[0].denied
    }
    // 8 of the 16 subnets send 313 requests, 8 send 312.
    assert.deepEqual([await denied(), await denied('--ipv6-subnet', '64')], [4_700, 8 * 13 + 8 * 12])
  })

  test('connections of one client are one key, whatever port a log of Envoy names', async (t) => {
    const at = folder(t)
    writeFileSync(join(at, 'c.yaml'), 'policies: { p: { algorithm: fixed-window, limit: 300, window: 1h } }')
    const line = (i: number): string =>
      `${JSON.stringify({ start_time: '2026-11-18T11:02:00.123Z', downstream_remote_address: `203.0.113.7:${40_000 + i}`, method: 'GET' })}\n`
    writeFileSync(join(at, 'log'), Array.from({ length: 400 }, (_, i) => line(i)).join(''))
    const { stdout } = await run(process.execPath, [MAIN, 'replay', '--config', join(at, 'c.yaml'), '--json', join(at, 'log')])
    assert.equal(JSON.parse(stdout).candidates[0].denied, 100)
  })

  for (const [i, [what, args, reason]] of (
    [
      ['a key that no line has', ['--key', '$remote_user'], /no line has a key for p: \$remote_user is empty in 1 requests/],
      ['an unknown policy', ['--key', 'q=$remote_addr'], /there is no policy "q"; did you mean "p"/],
      ['a match without a policy', ['--match', '/a'], /"\/a" names no policy; write p=\/a/],
      ['a format that does not fit', ['--format', '$msec $remote_addr'], /none of 1 lines could be read/],
      ['a folder that does not exist', ['--denials', '/does/not/exist'], /is in a folder that does not exist/],
    ] as const
  ).entries())
    everyNth(i, 5)(`${what} is refused with a reason and exit code 1 or 2`, async (t) => {
      const at = folder(t)
      writeFileSync(join(at, 'c.yaml'), 'policies: { p: { algorithm: fixed-window, limit: 1, window: 1h } }')
      writeFileSync(join(at, 'log'), '192.0.2.7 - - [10/Oct/2026:13:55:00 +0000] "GET /a HTTP/1.1" 200 1\n')
      const failed = run(process.execPath, [MAIN, 'replay', '--config', join(at, 'c.yaml'), ...args, join(at, 'log')])
      await assert.rejects(failed, (error: { code: number; stderr: string }) => {
        assert.match(error.stderr, reason)
        return error.code === 1 || error.code === 2
      })
    })
})
