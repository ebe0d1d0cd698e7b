import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { LineSplitter, MAX_LINE_BYTES } from './line-splitter.js'
import { LineFormat } from './log-format.js'
import { guessFormat, LineTemplate, logReader } from './log-reader.js'
import { timeOf } from './log-time.js'
import { KeyTemplate } from './request-rule.js'

const AT = Date.UTC(2026, 9, 10, 13, 55, 36)
const COMMON_LINE = '192.0.2.7 - ada [10/Oct/2026:13:55:36 +0000] "GET /a/b?c=1 HTTP/1.1" 200 2326'
const COMBINED_LINE = `${COMMON_LINE} "https://example.com/" "curl/8.0 \\"quoted\\""`

const HAPROXY_LINE =
  '192.0.2.7:40001 [10/Oct/2026:13:55:36.482] web app/srv1 0/0/1/2/3 200 1234 - - ---- 1/1/0/0/0 0/0 {a|b} "GET /a HTTP/1.1"'

const guessed = (line: string): string | undefined => guessFormat(Buffer.from(line))

/** The variables of one line; undefined for a line that cannot be read. */
function fieldsOf(format: string, line: string, ...names: string[]): Record<string, unknown> | undefined {
  const reader = logReader(format, names)
  const bytes = Buffer.from(`before\n${line}\nafter`)
  const start = 'before\n'.length
  if (!reader.read(bytes, start, start + Buffer.byteLength(line))) return undefined
  return { timeMs: reader.record.timeMs, ...Object.fromEntries(names.map((name) => [name, reader.record.value(name)])) }
}

describe('formats of lines', () => {
  test('common and combined', () => {
    const expected = {
      timeMs: AT,
      remote_addr: '192.0.2.7',
      remote_user: 'ada',
      request_method: 'GET',
      uri: '/a/b',
      request_uri: '/a/b?c=1',
      status: '200',
    }
    const names = ['remote_addr', 'remote_user', 'request_method', 'uri', 'request_uri', 'status']
    assert.deepEqual(fieldsOf('common', COMMON_LINE, ...names), expected)
    assert.deepEqual(fieldsOf('combined', COMBINED_LINE, ...names), expected)
  })

  test('a quote that Apache escapes does not end a value', () => {
    assert.equal(fieldsOf('combined', COMBINED_LINE, 'http_user_agent')?.http_user_agent, 'curl/8.0 \\"quoted\\"')
  })

  test('custom formats of nginx and of Apache', () => {
    const nginx = `$msec $http_x_user "$request" \${request_time}s`
    const line = '1791640536.250 bob "POST /login HTTP/2.0" 0.004s'
    assert.deepEqual(fieldsOf(nginx, line, 'http_x_user', 'uri', 'request_time'), {
      timeMs: 1_791_640_536_250,
      http_x_user: 'bob',
      uri: '/login',
      request_time: '0.004',
    })
    const apache = '%h %l %u %t "%r" %>s %b "%{X-User}i"'
    assert.equal(fieldsOf(apache, `${COMMON_LINE} "carol"`, 'http_x_user')?.http_x_user, 'carol')
  })

  test('JSON by the names of several servers', () => {
    const nginx = { time_iso8601: '2026-10-10T13:55:36+00:00', remote_addr: '192.0.2.7', request: 'GET /a?b HTTP/1.1' }
    assert.deepEqual(fieldsOf('json', JSON.stringify(nginx), 'remote_addr', 'uri'), { timeMs: AT, remote_addr: '192.0.2.7', uri: '/a' })
    const caddy = { ts: AT / 1_000, request: { remote_ip: '192.0.2.8', client_ip: '192.0.2.7', method: 'GET', uri: '/a?b' } }
    assert.deepEqual(fieldsOf('json', JSON.stringify(caddy), 'remote_addr', 'request_method', 'uri'), {
      timeMs: AT,
      remote_addr: '192.0.2.7',
      request_method: 'GET',
      uri: '/a',
    })
    const own = { time: AT, user: { id: 42 } }
    assert.deepEqual(fieldsOf('json', JSON.stringify(own), 'remote_addr'), { timeMs: AT, remote_addr: '' })
  })

  test('the path of a whole address, as load balancers write it', () => {
    const alb =
      '$type $time_iso8601 $elb $remote_addr $target $request_time $target_time $response_time $status $target_status $in $out "$request" '
    const rest = '10.0.0.1:80 0.001 0.002 0.000 200 200 34 366 "GET https://a.example:443/a/b?c=1 HTTP/1.1" "curl/8" - -'
    const line = `https 2026-10-10T13:55:36.000000Z app/lb/50dc6c495c0c9188 192.0.2.7:2817 ${rest}`
    assert.deepEqual(fieldsOf(alb, line, 'remote_addr', 'request_method', 'uri', 'request_uri'), {
      timeMs: AT,
      remote_addr: '192.0.2.7:2817',
      request_method: 'GET',
      uri: '/a/b',
      request_uri: 'https://a.example:443/a/b?c=1',
    })
    const json = (requestUrl: string) => JSON.stringify({ time: AT, httpRequest: { requestUrl } })
    for (const [url, uri] of [
      ['https://a.example/a/b?c=http://b', '/a/b'],
      ['https://a.example?c', '/'],
      ['/a://b/c', '/a://b/c'],
      ['*', '*'],
    ] as const)
      assert.equal(fieldsOf('json', json(url), 'uri')?.uri, uri, url)
  })

  test('lines of another form are not read', () => {
    const broken = ['', 'x', COMMON_LINE.slice(0, 40), COMMON_LINE.replace('Oct', 'Okt'), `a b ${COMMON_LINE}`, '{"time":1}', '\\', '"\\']
    for (const line of broken) assert.equal(fieldsOf('common', line, 'remote_addr'), undefined, line)
    for (const line of ['{', '[]', 'null', '{"time":"soon"}', '{"time":{}}', '{"__proto__":{"time":1791640536}}'])
      assert.equal(fieldsOf('json', line, 'remote_addr'), undefined, line)
  })

  test('what stands behind the last variable that is needed may be cut off', () => {
    assert.equal(fieldsOf('combined', COMMON_LINE, 'remote_addr')?.remote_addr, '192.0.2.7')
  })

  test('faults of a format name what is wrong', () => {
    assert.throws(() => logReader('$remote_addr "$request"', []), /has no time: \$time_local/)
    assert.throws(() => logReader('$remote_addr [$time_local]', ['uri']), /has no \$uri; it has \$remote_addr, \$time_local/)
    assert.throws(() => new LineFormat('$a$b'), /between \$a and \$b there must be a text/)
    assert.throws(() => new LineFormat('nothing'), /names no variable/)
    assert.throws(() => new LineFormat('%h %X'), /%X is not known/)
  })

  test('the format is known from a line', () => {
    const lines = [COMMON_LINE, COMBINED_LINE, '{"ts":1791640536}', '{"a":1}', 'else', HAPROXY_LINE]
    assert.deepEqual(lines.map(guessed), ['common', 'combined', 'json', undefined, undefined, 'haproxy'])
  })

  test('what stands before a line is read, or the line is not', () => {
    const json = '{"ts":1791640536,"client_ip":"192.0.2.7"}'
    const forms: readonly (readonly [line: string, format: string])[] = [
      [`Nov 18 11:02:00 web1 nginx: ${COMBINED_LINE}`, 'syslog combined'],
      [`<190>Nov  8 11:02:00 web1 nginx[12]: ${COMMON_LINE}`, 'syslog common'],
      [`Nov 18 11:02:00 nginx: ${COMMON_LINE}`, 'syslog common'],
      [`2026-10-10T13:55:36.123456+00:00 web1 nginx: ${COMMON_LINE}`, 'syslog common'],
      [`<190>1 2026-10-10T13:55:36Z web1 nginx 12 - - ${COMMON_LINE}`, 'syslog common'],
      [`83 <34>1 2026-10-10T13:55:36Z web1 nginx - ID47 [a@1 b="x \\"]\\" y"][c d="e"] \ufeff${COMMON_LINE}`, 'syslog common'],
      [`<134>Oct 10 13:55:36 lb haproxy[9]: ${HAPROXY_LINE}`, 'syslog haproxy'],
      [`2026-10-10T13:55:36.123456789Z stdout F ${COMBINED_LINE}`, 'cri combined'],
      [`2026-10-10T13:55:36.123456789Z stdout F ${json}`, 'cri json'],
      [JSON.stringify({ log: `${COMBINED_LINE}\n`, stream: 'stdout', time: '2026-10-10T13:55:36Z' }), 'envelope combined'],
      [JSON.stringify({ __REALTIME_TIMESTAMP: '1791640536000000', MESSAGE: COMBINED_LINE }), 'envelope combined'],
      [
        JSON.stringify({ '@timestamp': '2026-10-10T13:55:36Z', message: `<190>Nov 18 11:02:00 web1 nginx: ${COMMON_LINE}` }),
        'envelope syslog common',
      ],
      [JSON.stringify({ log: `${json}\n`, stream: 'stdout', time: '2026-10-10T13:55:36Z' }), 'envelope json'],
      [`web-1  | ${COMMON_LINE}`, 'container common'],
      [`[pod/web-1/nginx] 2026-10-10T13:55:36Z ${COMMON_LINE}`, 'container common'],
      [`2026-10-10T13:55:36Z ${COMMON_LINE}`, 'container common'],
      [`example.com:443 ${COMBINED_LINE}`, 'vhost combined'],
      [`2026-10-10T13:55:36Z stdout F Nov 18 11:02:00 web1 nginx: example.com ${COMMON_LINE}`, 'cri syslog vhost common'],
    ]
    for (const [line, format] of forms) {
      assert.equal(guessed(line), format, line)
      assert.equal(fieldsOf(format, line, 'remote_addr')?.remote_addr, '192.0.2.7', line)
    }
    for (const line of [`what is this ${COMMON_LINE}`, `a b ${COMMON_LINE}`, `2026-10-10T13:55:36Z stdout P ${COMMON_LINE.slice(0, 40)}`])
      assert.equal(guessed(line), undefined, line)
    // The bucket of Amazon S3's log, and the host behind the client, are no clients.
    for (const line of [
      `79a59df900b949e5 bucket [10/Oct/2026:13:55:36 +0000] 192.0.2.7 - 3E57 REST.GET - "GET /b HTTP/1.1" 200 -`,
      `192.0.2.7 example.com - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5`,
    ])
      assert.equal(guessed(line), undefined, line)
    assert.equal(guessed(`example.com {"time":1791640536,"who":"a"}`), 'vhost json')
    // Also before a format that was given.
    const given = '$remote_addr $msec $status'
    assert.equal(guessFormat(Buffer.from('Nov 18 11:02:00 web1 app: 192.0.2.7 1791640536 200'), { format: given }), `syslog ${given}`)
  })

  test('the port of HAProxy is no part of an IPv6 address', () => {
    const addresses = ['192.0.2.7:40001', '2001:db8::1:4001', '2001:db8:1:2:3:4:5:6:4001'].map((address) =>
      fieldsOf('haproxy', HAPROXY_LINE.replace('192.0.2.7:40001', address), 'remote_addr'),
    )
    assert.deepEqual(
      addresses.map((fields) => fields?.remote_addr),
      ['192.0.2.7', '2001:db8::1', '2001:db8:1:2:3:4:5:6'],
    )
    assert.equal(addresses[0]?.timeMs, AT + 482)
  })

  test('any member, and any columns, are the time that --time names', () => {
    const timed = (format: string, time: string, line: string) => {
      const reader = logReader(format, [], new LineTemplate('--time', time, ''))
      return reader.read(Buffer.from(line), 0, Buffer.byteLength(line)) ? reader.record.timeMs : undefined
    }
    assert.equal(timed('json', '$event.at', '{"event":{"at":"2026-10-10T13:55:36Z"}}'), AT)
    assert.equal(timed('json', '$event.at', '{"event.at":1791640536000000}'), AT)
    assert.equal(timed('json', '$d $t', '{"d":"2026-10-10","t":"13:55:36","time":"never"}'), AT)
    assert.equal(timed('$date $clock $cip', '$date $clock', '2026-10-10 13:55:36 192.0.2.7'), AT)
    assert.equal(timed('$when|$cip', '$when', '2026/10/10 13:55:36|192.0.2.7'), AT)
    assert.equal(timed('json', '$event.at', '{"time":1791640536}'), undefined)
  })

  test('a key names a member by its path, and an element of a list from the right', () => {
    const line = JSON.stringify({
      ts: AT,
      httpRequest: { clientIp: '192.0.2.7' },
      request: { headers: { 'X-Forwarded-For': ['6.6.6.6', '[2001:db8:0:4217::1]:443, 10.0.0.1'] } },
      users: 'ada, bob',
    })
    const keyOf = (text: string, subnet?: number) => {
      const template = new KeyTemplate(text, subnet)
      const reader = logReader('json', template.names)
      assert.ok(reader.read(Buffer.from(line), 0, Buffer.byteLength(line)))
      return template.keyOf(reader.record)
    }
    assert.equal(keyOf('$httpRequest.clientIp'), '192.0.2.7')
    assert.equal(keyOf('$remote_addr'), '192.0.2.7')
    assert.equal(keyOf(`\${request.headers.X-Forwarded-For}`), '10.0.0.1')
    assert.equal(keyOf(`\${request.headers.X-Forwarded-For}[-2]`), '2001:db8:0:4200::/56')
    assert.equal(keyOf(`\${request.headers.X-Forwarded-For[-2]}`, 64), '2001:db8:0:4217::/64')
    assert.equal(keyOf('$users[-2]/$httpRequest.clientIp'), 'ada/192.0.2.7')
    assert.equal(keyOf('$users[-3]'), undefined)
    assert.throws(() => new KeyTemplate('$users[-0]'), /number of an element from the right/)
  })
})

test('a line that Kubernetes or Docker wrote in parts is one, of each stream: a long request is not left out', () => {
  const path = 'x'.repeat(20_000)
  const line = `192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET /${path} HTTP/1.1" 200 5`
  const read = (format: string, lines: readonly string[]): unknown[] => {
    const reader = logReader(format, ['remote_addr', 'uri'])
    return lines.map((each) => {
      const isRead = reader.read(Buffer.from(each), 0, Buffer.byteLength(each))
      return isRead === true ? [reader.record.value('remote_addr'), reader.record.value('uri').length] : isRead
    })
  }
  const cri = (tag: string, text: string, stream = 'stdout'): string => `2026-10-10T13:55:36.1Z ${stream} ${tag} ${text}`
  const parts = [line.slice(0, 16_384), line.slice(16_384)] as const
  assert.deepEqual(read('cri common', [cri('P', parts[0]), cri('F', 'a warning', 'stderr'), cri('F', parts[1]), cri('F', COMMON_LINE)]), [
    'part',
    false,
    ['192.0.2.7', 20_001],
    ['192.0.2.7', 4],
  ])
  const docker = (log: string): string => JSON.stringify({ log, stream: 'stdout', time: '2026-10-10T13:55:36.1Z' })
  assert.deepEqual(read('envelope common', [docker(parts[0]), docker(`${parts[1]}\n`), docker(COMMON_LINE)]), [
    'part',
    ['192.0.2.7', 20_001],
    ['192.0.2.7', 4],
  ])
})

test('only Docker writes a line in parts that is long and has no end, and a stream that is no text ends nothing', () => {
  const reader = logReader('envelope common', ['remote_addr'])
  const read = (envelope: object): unknown => {
    const line = Buffer.from(JSON.stringify(envelope))
    return reader.read(line, 0, line.length) === true && reader.record.value('remote_addr')
  }
  const long = COMMON_LINE.replace('GET /', `GET /${'x'.repeat(20_000)}`)
  assert.deepEqual([read({ message: long }), read({ MESSAGE: long }), read({ message: COMMON_LINE })], Array(3).fill('192.0.2.7'))
  for (const stream of [{ toString: 1 }, { toString: null, valueOf: null }, 5, 'other'])
    assert.deepEqual(
      [read({ log: long, stream }), guessFormat(Buffer.from(JSON.stringify({ log: COMMON_LINE, stream })))],
      ['192.0.2.7', 'envelope common'],
    )
})

test('times in every form that logs use', () => {
  const forms = [
    '10/Oct/2026:13:55:36 +0000',
    '10/Oct/2026:15:55:36 +0200',
    '10/Oct/2026:06:25:36 -0730',
    '2026-10-10T13:55:36Z',
    '2026-10-10 13:55:36',
    '2026-10-10T15:55:36+0200',
    '1791640536',
    '1791640536.000',
    '1791640536000',
    '1791640536000000',
    '10/Oct/2026:13:55:36',
    '10/Oct/2026:13:55:36.000',
    '2026/10/10 13:55:36',
    '2026-10-10T13:55:36',
    '2026-10-10 13:55:36 UTC',
    '2026-10-10 15:55:36 +0200',
    '2026-10-10 13:55:36,000',
    'Sat, 10 Oct 2026 13:55:36 GMT',
  ]
  for (const form of forms) assert.equal(timeOf(form), AT, form)
  assert.equal(timeOf('2026-10-10T13:55:36.5Z'), AT + 500)
  for (const form of ['', '-', 'now', '12', '99/Foo/2026:13:55:36 +0000', '2026']) assert.ok(Number.isNaN(timeOf(form)), form)
})

function linesOf(...chunks: Buffer[]): { lines: string[]; tooLong: number } {
  const lines: string[] = []
  const splitter = new LineSplitter((bytes, start, end) => lines.push(bytes.toString('latin1', start, end)))
  for (const chunk of chunks) splitter.write(chunk)
  splitter.end()
  return { lines, tooLong: splitter.tooLong }
}

test('lines are the same however the bytes are cut into chunks', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n', '\r', '\r\n', 'cde'), maxLength: 60 })
  fc.assert(
    fc.property(text, fc.array(fc.nat(8), { maxLength: 40 }), (whole, sizes) => {
      const bytes = Buffer.from(whole)
      const chunks: Buffer[] = []
      let at = 0
      for (const size of sizes) {
        chunks.push(bytes.subarray(at, at + size))
        at += size
      }
      chunks.push(bytes.subarray(at))
      const expected = whole
        .split('\n')
        .map((line) => line.replace(/\r$/, ''))
        .filter((line) => line !== '')
      assert.deepEqual(linesOf(...chunks).lines, expected)
    }),
  )
})

test('a byte order mark is no part of the first line, and UTF-16 is read, however the bytes are cut', () => {
  const text = '\ufeffa é\nb\r\n\nc'
  const little = Buffer.from(text, 'utf16le')
  for (const whole of [Buffer.from(text), little, Buffer.from(little).swap16()]) {
    for (let size = 1; size <= whole.length; size++) {
      const chunks = Array.from({ length: Math.ceil(whole.length / size) }, (_, i) => whole.subarray(i * size, (i + 1) * size))
      assert.deepEqual(linesOf(...chunks), { lines: ['a é', 'b', 'c'].map((line) => Buffer.from(line).toString('latin1')), tooLong: 0 })
    }
  }
})

test('a line that is too long is counted and skipped, in one chunk or in many', () => {
  const long = Buffer.alloc(MAX_LINE_BYTES + 1, 'x')
  const whole = Buffer.concat([Buffer.from('a\n'), long, Buffer.from('\nb\n')])
  assert.deepEqual(linesOf(whole), { lines: ['a', 'b'], tooLong: 1 })
  const pieces = Array.from({ length: Math.ceil(whole.length / 1_000) }, (_, i) => whole.subarray(i * 1_000, (i + 1) * 1_000))
  assert.deepEqual(linesOf(...pieces), { lines: ['a', 'b'], tooLong: 1 })
  assert.deepEqual(linesOf(long, Buffer.from('y')), { lines: [], tooLong: 1 })
  const longest = Buffer.alloc(MAX_LINE_BYTES, 'x')
  assert.deepEqual(
    linesOf(longest.subarray(0, 5), longest.subarray(5), Buffer.from('\nb')).lines.map(({ length }) => length),
    [MAX_LINE_BYTES, 1],
  )
})
