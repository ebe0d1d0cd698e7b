import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, mkdtempSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { KeyTemplate } from '../replay/request-rule.js'
import { LineRecords } from './line-records.js'
import { LogFollower } from './log-follower.js'

interface Followed {
  readonly file: string
  readonly notices: string[]
  readonly follower: LogFollower
  /** The lines that were added since the last call. */
  lines(): Promise<string[]>
}

function follow(t: TestContext, { fromStart = false, content }: { fromStart?: boolean; content?: string } = {}): Followed {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-follow-'))
  const file = join(folder, 'access.log')
  if (content !== undefined) writeFileSync(file, content)
  const read: string[] = []
  const notices: string[] = []
  const follower = new LogFollower({
    file,
    fromStart,
    onLine: (bytes, start, end) => read.push(bytes.toString('latin1', start, end)),
    onNotice: (text) => notices.push(text.replace(folder, '')),
  })
  t.after(async () => {
    await follower.close()
    rmSync(folder, { recursive: true })
  })
  const lines = async (): Promise<string[]> => {
    await follower.poll()
    return read.splice(0)
  }
  return { file, notices, follower, lines }
}

test('a log is read from its end on, or from its start', async (t) => {
  const fromEnd = follow(t, { content: 'old 1\nold 2\n' })
  assert.deepEqual(await fromEnd.lines(), [])
  appendFileSync(fromEnd.file, 'new 1\nnew 2\nhalf')
  assert.deepEqual(await fromEnd.lines(), ['new 1', 'new 2'])
  appendFileSync(fromEnd.file, ' of a line\n')
  assert.deepEqual(await fromEnd.lines(), ['half of a line'])
  assert.deepEqual(await fromEnd.lines(), [])

  const fromStart = follow(t, { content: 'old 1\nold 2', fromStart: true })
  assert.deepEqual(await fromStart.lines(), ['old 1'])
  fromStart.follower.end()
  appendFileSync(fromStart.file, '\nnew\n')
  assert.deepEqual(await fromStart.lines(), ['old 2', 'new'])
})

test('a log that is followed from its end has its columns and its encoding from its start', async (t) => {
  const head = '\ufeff#Version: 1.0\n#Fields: date time c-ip\n2026-10-10 13:55:36 192.0.2.7\n#half'
  for (const encoding of ['utf8', 'utf16le'] as const) {
    const { file, lines } = follow(t, { content: '' })
    writeFileSync(file, head, encoding)
    assert.deepEqual(await lines(), ['#Version: 1.0', '#Fields: date time c-ip'])
    appendFileSync(file, ' of a line\n2026-10-10 13:55:37 192.0.2.8\n', encoding)
    assert.deepEqual((await lines()).at(-1), '2026-10-10 13:55:37 192.0.2.8')
  }
})

test('columns that lines of the log name are read; a missing one is said, and ends no run', () => {
  const keys: string[] = []
  const notices: string[] = []
  const rule = { format: undefined, time: undefined, key: new KeyTemplate('$remote_addr'), filter: undefined, cost: undefined }
  const log = new LineRecords(
    rule,
    { lateMs: 10_000 },
    ({ key }) => keys.push(key),
    (text) => notices.push(text),
  )
  const give = (line: string): void => log.onLine(Buffer.from(line), 0, line.length)
  for (const line of ['#Version: 1.0', '#Fields: date time c-ip', '2026-10-10 13:55:36 192.0.2.7', '2026-10-10 13:55:37 192.0.2.8'])
    give(line)
  for (const line of ['#Fields: date time cs-method', '2026-10-10 13:55:38 GET', '2026-10-10 13:55:39 GET']) give(line)
  log.end()
  const { counts } = log
  assert.deepEqual([keys, counts.lines, counts.unreadable, notices.length], [['192.0.2.7', '192.0.2.8'], 4, 2, 1])
  assert.match(notices[0] ?? '', /the format has no \$remote_addr; it has \$date, \$time, \$request_method/)
})

test('after a rotation by rename the old file is read to its end, also what its writer adds before it has the new one', async (t) => {
  const { file, lines, notices } = follow(t, { content: '' })
  await lines()
  appendFileSync(file, 'a\n')
  assert.deepEqual(await lines(), ['a'])
  appendFileSync(file, 'b\n')
  renameSync(file, `${file}.1`)
  appendFileSync(`${file}.1`, 'c\n')
  // There is no new file yet.
  assert.deepEqual(await lines(), ['b', 'c'])
  appendFileSync(`${file}.1`, 'd\n')
  writeFileSync(file, 'e\n')
  assert.deepEqual(await lines(), ['d', 'e'])
  // Another worker of the server is a moment late.
  appendFileSync(`${file}.1`, 'f\n')
  appendFileSync(file, 'g\n')
  assert.deepEqual((await lines()).sort(), ['f', 'g'])
  assert.deepEqual(notices, ['/access.log was rotated: the new file is read from its start'])
})

test('a rotation twice between two polls loses only the file in between', async (t) => {
  const { file, lines } = follow(t, { content: '' })
  await lines()
  appendFileSync(file, 'a\n')
  renameSync(file, `${file}.2`)
  writeFileSync(file, 'lost\n')
  renameSync(file, `${file}.1`)
  writeFileSync(file, 'b\n')
  assert.deepEqual(await lines(), ['a', 'b'])
})

test('a log that is truncated is read from its start, also when it has grown beyond its old length meanwhile', async (t) => {
  const { file, lines, notices } = follow(t, { content: '' })
  await lines()
  appendFileSync(file, 'one\ntwo\n')
  assert.deepEqual(await lines(), ['one', 'two'])
  copyFileSync(file, `${file}.1`)
  truncateSync(file)
  appendFileSync(file, 'a\n')
  assert.deepEqual(await lines(), ['a'])
  truncateSync(file)
  appendFileSync(file, 'longer than it was\nand more\n')
  assert.deepEqual(await lines(), ['longer than it was', 'and more'])
  truncateSync(file)
  assert.deepEqual(await lines(), [])
  appendFileSync(file, 'z\n')
  assert.deepEqual(await lines(), ['z'])
  assert.equal(notices.length, 3)
})

test('a log that does not exist yet is followed from its start', async (t) => {
  const { file, lines, notices } = follow(t)
  assert.deepEqual([await lines(), await lines()], [[], []])
  assert.deepEqual(notices, ['/access.log does not exist: it is followed as soon as it does'])
  writeFileSync(file, 'first\n')
  assert.deepEqual(await lines(), ['first'])
})

test('a line of many chunks is left out and counted, and what follows is read', async (t) => {
  const { file, lines, follower } = follow(t, { content: '' })
  await lines()
  appendFileSync(file, `${'x'.repeat(5_000_000)}\nshort\n`)
  assert.deepEqual([await lines(), follower.tooLong], [['short'], 1])
})

test('a folder is refused', async (t) => {
  const follower = new LogFollower({ file: tmpdir(), fromStart: false, onLine: () => undefined, onNotice: () => undefined })
  t.after(() => follower.close())
  await assert.rejects(follower.poll(), /no regular file|EISDIR/)
})

test('a long reading ends between two chunks when the run is to stop', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-follow-'))
  const file = join(folder, 'access.log')
  writeFileSync(file, 'a line of a log\n'.repeat(300_000))
  let lines = 0
  const follower = new LogFollower({
    file,
    fromStart: true,
    isStopping: () => lines > 0,
    onLine: () => lines++,
    onNotice: () => undefined,
  })
  t.after(async () => {
    await follower.close()
    rmSync(folder, { recursive: true })
  })
  await follower.poll()
  assert.ok(lines > 0 && lines < 100_000, `${lines} lines were read`)
})

test('of a log that no format reads one line in many is looked at, and it is read from that one on', () => {
  let records = 0
  const rule = { format: undefined, time: undefined, key: new KeyTemplate('$remote_addr'), filter: undefined, cost: undefined }
  const notices: string[] = []
  const log = new LineRecords(
    rule,
    { lateMs: 10_000 },
    () => records++,
    (text) => notices.push(text),
  )
  const write = (line: string, times: number): void => {
    const bytes = Buffer.from(line)
    for (let i = 0; i < times; i++) log.onLine(bytes, 0, bytes.length)
  }
  write('2024-11-18 16:55:37,123 INFO nothing that a server wrote', 100)
  for (let i = 0; i < 200; i++) {
    write('192.0.2.7 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5', 1)
    write('2024-11-18 16:55:37,123 INFO nothing that a server wrote', 1)
  }
  log.end()
  assert.ok(records > 50 && records < 200, `${records} of 200 were read`)
  assert.equal(log.counts.unreadable, 500 - records)
  assert.deepEqual(notices, ['none of 100 lines can be read: give the format with --format'])
})
