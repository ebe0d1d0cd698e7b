import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LineFormat } from './log-format.js'
import { guessFormat, logReader } from './log-reader.js'
import { timeOf } from './log-time.js'

const AT = Date.UTC(2026, 9, 10, 13, 55, 36)
const COMMON_LINE = '192.0.2.7 - ada [10/Oct/2026:13:55:36 +0000] "GET /a/b?c=1 HTTP/1.1" 200 2326'
const COMBINED_LINE = `${COMMON_LINE} "https://example.com/" "curl/8.0 \\"quoted\\""`

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

  test('lines of another form are not read', () => {
    const broken = [
      '',
      'x',
      COMMON_LINE.slice(0, 40),
      COMMON_LINE.replace('Oct', 'Okt'),
      COMMON_LINE.replace('+0000', ''),
      '{"time":1}',
      '\\',
      '"\\',
    ]
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
    assert.deepEqual([COMMON_LINE, COMBINED_LINE, '{"a":1}', 'else'].map(guessFormat), ['common', 'combined', 'json', undefined])
  })
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
  ]
  for (const form of forms) assert.equal(timeOf(form), AT, form)
  assert.equal(timeOf('2026-10-10T13:55:36.5Z'), AT + 500)
  for (const form of ['', '-', 'now', '12', '99/Foo/2026:13:55:36 +0000', '2026']) assert.ok(Number.isNaN(timeOf(form)), form)
})
