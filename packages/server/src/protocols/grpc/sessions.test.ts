import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { aGuard } from 'sluicegate-testkit/service/running-service.js'
import { type Piece, SessionTurns } from './session-turns.js'
import { Sessions } from './sessions.js'
import { DEFAULT_GRPC_BOUNDS } from './status.js'

/** A connection that is destroyed and never closes, as happens in Node.js to some whose encryption failed. */
class StuckSession extends EventEmitter {
  destroyed = false
  readonly closed = false

  readonly socket: Socket

  constructor(socket: Socket) {
    super()
    this.socket = socket
  }

  destroy(): void {
    this.destroyed = true
  }

  close(): void {}
}

function stuckSession(socket: Socket): ServerHttp2Session {
  return new StuckSession(socket) as unknown as ServerHttp2Session
}

test('a connection that is destroyed and does not close loses its place and its socket, also where it was refused', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] })
  const sessions = new Sessions({ ...DEFAULT_GRPC_BOUNDS, maxConnections: 1 }, aGuard('grpc'))
  const [first, refused, next] = [new Socket(), new Socket(), new Socket()]
  const session = stuckSession(first)
  sessions.add(session, first)
  Object.assign(session, { destroyed: true })
  sessions.add(stuckSession(refused), refused)
  assert.deepEqual([sessions.open, sessions.cuts.refused], [1, 1])
  for (let i = 0; i < 8; i++) t.mock.timers.tick(250)
  assert.deepEqual([first.destroyed, refused.destroyed, sessions.open], [true, true, 0])
  sessions.add(stuckSession(next), next)
  assert.deepEqual([sessions.open, sessions.cuts.refused], [1, 1])
  // A late sign of the first takes no place of others.
  session.emit('close')
  assert.equal(sessions.open, 1)
  const closed = sessions.close(0)
  for (let i = 0; i < 8; i++) {
    await new Promise(setImmediate)
    t.mock.timers.tick(250)
  }
  await closed
  assert.equal(next.destroyed, true)
})

function workFor(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs; );
}

function aConnection(): { turns: SessionTurns; readonly isReading: boolean } {
  let isReading = true
  const _handle = {
    readStop: () => {
      isReading = false
    },
    readStart: () => {
      isReading = true
    },
  }
  const turns = new SessionTurns({ _handle, destroyed: false } as unknown as Socket, aGuard('grpc'))
  return {
    turns,
    get isReading() {
      return isReading
    },
  }
}

test('what one connection has to do waits in one place: another one has its turn after one piece, and the first reads nothing meanwhile', async () => {
  await nextTurn()
  const [greedy, other] = [aConnection(), aConnection()]
  const done: string[] = []
  const piece = (name: string, pieces = 1): Piece => {
    let left = pieces
    return () => {
      workFor(0.5)
      done.push(name)
      return --left > 0
    }
  }
  for (let i = 0; i < 4; i++) greedy.turns.do(piece(`greedy ${i}`, i === 1 ? 2 : 1))
  other.turns.do(piece('other'))
  assert.deepEqual(done, ['greedy 0'])
  assert.deepEqual([greedy.isReading, other.isReading], [false, false])
  for (let turn = 0; turn < 20 && greedy.turns.length > 0; turn++) {
    const before = done.length
    await nextTurn()
    assert.ok(done.length - before <= 1, 'a turn is one piece')
    assert.equal(greedy.isReading, greedy.turns.length === 0)
  }
  assert.deepEqual(done, ['greedy 0', 'greedy 1', 'other', 'greedy 1', 'greedy 2', 'greedy 3'])
  assert.ok(other.isReading)
})

test('where one connection has had the time of a turn, nothing is read from the others in it, and all are read later', async () => {
  await nextTurn()
  const [busy, other, gone] = [aConnection(), aConnection(), aConnection()]
  gone.turns.leave()
  busy.turns.arrived()
  workFor(0.5)
  busy.turns.arrived()
  assert.deepEqual([busy.isReading, other.isReading, gone.isReading], [false, false, true])
  for (let turn = 0; turn < 3; turn++) await nextTurn()
  assert.ok(busy.isReading && other.isReading)
})
