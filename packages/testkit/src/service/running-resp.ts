import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { type Clock, manualClock, type Policy, tokenBucket } from 'sluicegate'
import { type ClientBounds, DEFAULT_CLIENTS } from 'sluicegate-config/config.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { Engine } from 'sluicegate-server/dist/engine/engine.js'
import type { Access } from 'sluicegate-server/dist/protocols/resp/access.js'
import type { SessionContext } from 'sluicegate-server/dist/protocols/resp/command.js'
import { ALL_COMMANDS, CommandTable } from 'sluicegate-server/dist/protocols/resp/command-table.js'
import { RespServer } from 'sluicegate-server/dist/protocols/resp/resp-server.js'
import { Session, type Waiting } from 'sluicegate-server/dist/protocols/resp/session.js'
import { commandBytes, type RespReply, repliesIn } from '../servers/resp.js'
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

/** Clients need no token, and may do all. */
export const OPEN_ACCESS: Access = {
  generation: 1,
  needsToken: () => false,
  has: () => false,
  allows: () => false,
  priorityOf: () => undefined,
}

/** Options of {@link sessionContext}. */
interface SessionContextOptions {
  readonly clock?: Clock
  readonly access?: Access
  readonly policies?: readonly Policy[]
}

/** What sessions in tests share, by default with a policy `api` of 10 a minute. */
export function sessionContext({
  clock = manualClock(1.7e12),
  access = OPEN_ACCESS,
  policies,
}: SessionContextOptions = {}): SessionContext {
  const served = policies ?? [tokenBucket({ limit: 10, window: '1m', name: 'api' })]
  const engine = new Engine(
    served.map((policy) => ({ policy, maxKeys: undefined, onFull: 'evict' as const })),
    { clock },
  )
  const onFault = (fault: unknown): never => {
    throw fault
  }
  const facts = () => ({ version: '0.1.0', connections: 1, uptimeS: 0 })
  return { engine, access, commands: new CommandTable(ALL_COMMANDS), facts, onFault }
}

/** A session without a socket. */
export class TestSession {
  readonly session: Session

  constructor(context: SessionContext = sessionContext()) {
    this.session = new Session(1, context, () => undefined)
  }

  /** Adds bytes and answers what they complete. */
  feed(bytes: Buffer): { readonly replies: Buffer; readonly waiting: Waiting } {
    this.session.push(bytes)
    const replies: Buffer[] = []
    for (;;) {
      const waiting = this.session.run()
      replies.push(this.session.takeReplies())
      if (waiting !== 'turn' && waiting !== 'room') return { replies: Buffer.concat(replies), waiting }
    }
  }

  /** The reply to one command. */
  call(...args: readonly (string | Buffer | number)[]): RespReply {
    const [reply] = repliesIn(this.feed(commandBytes(...args)).replies)
    return reply as RespReply
  }
}
