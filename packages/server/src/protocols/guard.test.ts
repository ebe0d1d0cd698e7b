import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Guard, listen } from './guard.js'

interface Logged {
  readonly protocol: string
  readonly err: Error
  readonly unlogged?: number
}

function setUp() {
  const logged: Logged[] = []
  const clock = { nowMs: 0 }
  const guard = new Guard('grpc', { error: (fault: Logged) => void logged.push(fault) } as never, () => clock.nowMs)
  return { guard, logged, clock }
}

class Closable extends EventEmitter {
  destroyed = 0

  destroy(): void {
    this.destroyed++
  }
}

function fail(): never {
  throw new Error('mine')
}

test('an exception of a handler ends the emitter, or what the event brought, and reaches no other', () => {
  const { guard, logged } = setUp()
  const server = new EventEmitter()
  const socket = new Closable()
  guard.on(server, 'connection', fail)
  server.emit('connection', socket)
  assert.equal(socket.destroyed, 1)
  guard.once(socket, 'end', fail)
  listen(socket, 'data', guard.listener(fail))
  socket.emit('end')
  socket.emit('end')
  socket.emit('data', Buffer.alloc(1))
  assert.deepEqual([socket.destroyed, guard.faults], [3, 3])
  assert.deepEqual([logged.length, logged[0]?.err.message], [1, 'mine'])
})

test('a handler whose promise is rejected, and a callback that throws, do the same', async () => {
  const { guard } = setUp()
  const socket = new Closable()
  guard.on(socket, 'data', async () => fail())
  socket.emit('data')
  await nextTurn()
  assert.equal(socket.destroyed, 1)
  assert.equal(guard.callback(socket, (text: string) => `${text}!`)('a'), 'a!')
  assert.equal(guard.callback(socket, fail)(), undefined)
  assert.deepEqual([socket.destroyed, guard.faults], [2, 2])
})

test('a fault is caught even where the connection cannot be closed', () => {
  const { guard } = setUp()
  guard.caught(new Error('mine'), { destroy: fail })
  guard.caught(new Error('mine'), undefined, 'text')
  assert.equal(guard.faults, 2)
})

test('faults are logged once a minute, with the number of those between', () => {
  const { guard, logged, clock } = setUp()
  for (let i = 0; i < 1_000; i++) guard.caught(new Error(String(i)))
  clock.nowMs = 59_999
  guard.caught(new Error('late'))
  assert.deepEqual(
    logged.map(({ err, unlogged }) => [err.message, unlogged]),
    [['0', undefined]],
  )
  clock.nowMs = 60_000
  guard.caught(new Error('next'))
  assert.deepEqual([logged[1]?.err.message, logged[1]?.unlogged, logged[1]?.protocol], ['next', 1_000, 'grpc'])
  assert.equal(guard.faults, 1_002)
})

const SOURCES = fileURLToPath(new URL('../../src/', import.meta.url))
/** Handlers and timers of Node.js, and callbacks after a PING. */
const HANDLER =
  /(?<![\w.])(?:setTimeout|setInterval|setImmediate|queueMicrotask)\(|\.(?:on|once|addListener|prependListener|nextTick|ping)\(/
const GUARDED = /(?:^|\W)(?:this\.#?)?guard\.(?:on|once)\(|\.ping\(guard\./
/**
 * What is registered elsewhere, and why that can throw nothing: the guard itself; the start of a server; turns and promises whose calls are guarded
 * by those who make them.
 */
const OTHERS = [
  'protocols/guard.ts',
  'protocols/listen-on.ts',
  'protocols/later-turns.ts',
  'protocols/grpc/in-time.ts',
  'protocols/http/observe.ts',
]

test('no handler of a protocol goes around the guard', () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter(
    (file) => /^(?:protocols\/.*|dashboard\/[^/]*)\.ts$/.test(file) && !/\.(?:test|gen)\.ts$/.test(file) && !OTHERS.includes(file),
  )
  assert.ok(files.length > 50)
  const around = files.flatMap((file) =>
    readFileSync(SOURCES + file, 'utf8')
      .split('\n')
      .flatMap((line, i) => (HANDLER.test(line) && !GUARDED.test(line) ? [`${file}:${i + 1} ${line.trim()}`] : [])),
  )
  assert.deepEqual(around, [])
})
