import assert from 'node:assert/strict'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, test } from 'node:test'
import { type Executable, librariesOf } from '../executable/executable.js'
import { version } from '../made-with.js'
import { output, running, servedAt, take } from './running.js'

/** A folder in which a program finds nothing but itself and its libraries. */
interface EmptyRoot {
  readonly path: string
  /** The command that runs the program there. */
  command(...args: string[]): string[]
  write(name: string, text: string): void
}

function emptyRoot(executable: string): EmptyRoot {
  const path = mkdtempSync(join(tmpdir(), 'sluicegate-root-'))
  for (const file of librariesOf(executable)) {
    mkdirSync(dirname(path + file), { recursive: true })
    copyFileSync(realpathSync(file), path + file)
  }
  copyFileSync(executable, join(path, 'sluicegate'))
  return {
    path,
    command: (...args) => ['/usr/sbin/chroot', path, '/sluicegate', ...args],
    write: (name, text) => writeFileSync(join(path, name), text),
  }
}

const CONFIG = 'policies:\n  per-user: { algorithm: token-bucket, limit: 3, window: 1h }\n'
const LOG = Array.from({ length: 9 }, (_, i) => `192.0.2.1 - - [01/Jan/2026:00:00:0${i} +0000] "GET / HTTP/1.1" 200 5`).join('\n')

/** The executable in a root folder that has nothing but it, its libraries and files of a test. */
export function executableTests(executable: () => Executable): void {
  let made: EmptyRoot | undefined
  after(() => made !== undefined && rmSync(made.path, { recursive: true }))
  const root = (): EmptyRoot => {
    made ??= emptyRoot(executable().path)
    made.write('limits.yaml', CONFIG)
    made.write('access.log', `${LOG}\n`)
    return made
  }
  const ran = (...args: string[]): string => output(root().command(...args))

  test('in an empty root the executable says its version and checks a file', () => {
    assert.equal(ran('--version').trim(), version())
    assert.match(ran('check', '/limits.yaml'), /good, 1 polic/)
  })

  for (const [what, ...flags] of [['one process'], ['two processes', '--processes', '2'], ['two threads', '--threads', '2']]) {
    test(`in an empty root ${what} of the executable serve one budget, the page, metrics, gRPC and RESP, and end by SIGTERM`, async (t) => {
      const listen = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--resp', '127.0.0.1:0']
      const service = running(t, root().command('serve', '--config', '/limits.yaml', '--json', '--drain', '0', ...listen, ...flags))
      const { http = '', grpc = '', resp = '' } = await servedAt(service)
      const answers = await Promise.all([0, 1, 2, 3, 4].map(() => take(http, 'per-user')))
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 429, 429], service.text())
      const [page, script] = [await textAt(http, '/'), await textAt(http, '/metrics')]
      assert.match(page, /<!doctype html>/)
      const [, asset = ''] = /src="([^"]+\.js)"/.exec(page) ?? []
      assert.equal((await fetch(new URL(asset, `${http}/`))).status, 200, asset)
      assert.match(script, /sluicegate_/)
      assert.match(ran('take', 'per-user', 'bob', '--url', http), /^allowed by per-user: 2 left/)
      assert.equal(ran('health', '--url', http), 'ready\n')
      assert.match(ran('load', resp.replace('redis:', 'resp:'), '--policy', 'per-user', '--duration', '300ms', '--rate', '50'), /allowed/)
      assert.match(ran('load', grpc, '--policy', 'per-user', '--duration', '300ms', '--rate', '50'), /allowed/)
      assert.equal(await service.end('SIGTERM'), 0, service.text())
    })
  }

  test('workers of an executable that was started by a relative path start, too', async (t) => {
    const program = `./${relative(process.cwd(), executable().path)}`
    const flags = ['--config', join(root().path, 'limits.yaml'), '--http', '127.0.0.1:0', '--json', '--drain', '0', '--processes', '2']
    const service = running(t, [program, 'serve', ...flags])
    const { http = '' } = await servedAt(service)
    assert.equal((await take(http, 'per-user')).status, 200, service.text())
    assert.equal(await service.end('SIGTERM'), 0, service.text())
  })

  test('in an empty root the executable loads from two processes, replays a log and follows one', () => {
    const load = ['load', 'memory', '--config', '/limits.yaml', '--policy', 'per-user', '--duration', '300ms', '--rate', '50']
    assert.equal(JSON.parse(ran(...load, '--processes', '2', '--json')).processes, 2)
    const replay = JSON.parse(ran('replay', '/access.log', '--config', '/limits.yaml', '--json', '--html', '/report.html'))
    assert.match(JSON.stringify(replay), /"denied":6/)
    assert.match(readFileSync(join(root().path, 'report.html'), 'utf8'), /<svg|<script/)
    const gate = ran('gate', '--follow', '/access.log', '--once', '--window', '1m', '--block', '3', '--deny-list', '/denied', '--json')
    assert.match(gate, /"192\.0\.2\.1"/)
  })
}

async function textAt(url: string, path: string): Promise<string> {
  return (await fetch(url + path)).text()
}
