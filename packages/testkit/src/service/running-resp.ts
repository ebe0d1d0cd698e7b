import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import type { Clock, Policy } from 'sluicegate'
import { type ClientBounds, DEFAULT_CLIENTS } from 'sluicegate-config/config.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { Engine } from 'sluicegate-server/dist/engine/engine.js'
import type { Access } from 'sluicegate-server/dist/protocols/resp/access.js'
import { RespServer } from 'sluicegate-server/dist/protocols/resp/resp-server.js'
import { OPEN_ACCESS } from './resp-session.js'
import { aGuard } from './running-service.js'

/** Options of {@link runningResp}. */
export interface RunningRespOptions {
  readonly policies?: readonly Policy[]
  readonly clock?: Clock
  readonly access?: Access
  readonly bounds?: Partial<ClientBounds>
  /** A Unix socket instead of a free port. */
  readonly path?: string
  readonly tls?: Certificates
}

/** A server on loopback for the length of a test. */
export interface RunningResp {
  readonly server: RespServer
  readonly engine: Engine
  readonly port: number
  /** A socket of the server, which ends with the test. */
  open(): Socket
}

export async function runningResp(t: TestContext, options: RunningRespOptions = {}): Promise<RunningResp> {
  const { policies = [], clock, access = OPEN_ACCESS, bounds, path, tls } = options
  const engine = new Engine(
    policies.map((policy) => ({ policy, maxKeys: undefined, onFull: 'evict' as const })),
    { ...(clock && { clock }) },
  )
  const server = new RespServer({
    engine,
    access,
    bounds: { ...DEFAULT_CLIENTS, ...bounds },
    version: '0.1.0',
    guard: aGuard('resp'),
    onError: () => undefined,
    tls,
  })
  const url = await server.listen(path === undefined ? { host: '127.0.0.1', port: 0 } : { path })
  const sockets: Socket[] = []
  let isStopped = false
  const stop = server.stop.bind(server)
  server.stop = (finishMs) => {
    isStopped = true
    return stop(finishMs)
  }
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    if (!isStopped) await stop(0)
    engine.close()
  })
  const port = Number(/:(\d+)$/.exec(url)?.[1])
  return {
    server,
    engine,
    port,
    open() {
      const socket = path === undefined ? connect(port, '127.0.0.1') : connect(path)
      socket.on('error', () => undefined)
      sockets.push(socket)
      return socket
    },
  }
}

/** What a socket receives until `isEnough` or its end; nothing of one that has ended. */
export function received(socket: Socket, isEnough: (text: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1')
      if (isEnough(text)) done()
    }
    const done = (): void => {
      socket.off('data', onData)
      socket.off('close', done)
      resolve(text)
    }
    if (socket.closed) return done()
    socket.on('data', onData)
    socket.once('close', done)
  })
}
