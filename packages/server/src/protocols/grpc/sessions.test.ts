import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerHttp2Session } from 'node:http2'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { aGuard } from 'sluicegate-testkit/service/running-service.js'
import { DEFAULT_GRPC_BOUNDS } from './grpc-bounds.js'
import { Sessions } from './sessions.js'

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
