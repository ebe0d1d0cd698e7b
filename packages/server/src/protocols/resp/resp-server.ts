import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { ClientBounds } from 'sluicegate-config/config.js'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { TlsConfig } from 'sluicegate-config/tls.js'
import { after } from '../../after.js'
import type { Engine } from '../../engine/engine.js'
import type { CallTracing } from '../call-tracing.js'
import type { Guard } from '../guard.js'
import { Handshakes, tlsOptions } from '../handshakes.js'
import { listenOn } from '../listen-on.js'
import type { ProtocolServer } from '../protocol-server.js'
import type { Access } from './access.js'
import { ALL_COMMANDS, CommandTable, tracedCommands } from './command-table.js'
import { Connections } from './connections.js'

/** What a {@link RespServer} is made of. */
export interface RespServerParts {
  readonly engine: Engine
  readonly access: Access
  readonly bounds: ClientBounds
  readonly version: string
  readonly guard: Guard
  /** Undefined: without encryption. */
  readonly tls?: TlsConfig | undefined
  /** Undefined: commands are not followed. */
  readonly tracing?: CallTracing | undefined
  /** Receives errors of the port, such as no more file descriptors. */
  readonly onError: (error: Error) => void
}

/** Connections beyond the bound that are kept until they are refused with a reply; more are closed without one. */
const REFUSED_AT_ONCE = 64
/** A client may close its side and still read the replies. */
const HALF_OPEN = { allowHalfOpen: true } as const

/** Answers the commands of Redis clients: `CL.THROTTLE`, and the named policies. */
export class RespServer implements ProtocolServer {
  readonly connections: Connections
  readonly #server: Server
  readonly #handshakes: Handshakes | undefined
  readonly #guard: Guard
  readonly #onError: (error: Error) => void
  readonly #scheme: 'redis' | 'rediss'

  constructor({ engine, access, bounds, version, guard, tls, tracing, onError }: RespServerParts) {
    const startedMs = performance.now()
    const uptimeS = (): number => Math.floor((performance.now() - startedMs) / 1000)
    const facts = () => ({ version, connections: this.connections.open, uptimeS: uptimeS() })
    const connections = new Connections(bounds, guard, {
      engine,
      access,
      commands: new CommandTable(tracedCommands(ALL_COMMANDS, tracing)),
      facts,
      onFault: (error) => guard.caught(error),
    })
    const server = tls === undefined ? createServer(HALF_OPEN) : createTlsServer(tlsOptions(tls, bounds.headersMs))
    server.maxConnections = bounds.maxConnections + REFUSED_AT_ONCE
    guard.on(server, tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) =>
      // From the end of the handshake on: one that a client leaves before would stay open for ever.
      connections.add(Object.assign(socket, HALF_OPEN)),
    )
    guard.on(server, 'drop', () => connections.cuts.refused++)
    this.#handshakes = tls && new Handshakes(server, bounds.maxConnections, guard)
    this.connections = connections
    this.#server = server
    this.#guard = guard
    this.#onError = onError
    this.#scheme = tls === undefined ? 'redis' : 'rediss'
  }

  get traffic(): Connections {
    return this.connections
  }

  async listen(at: ListenAddress): Promise<string> {
    const where = await listenOn(this.#server, at, this.#guard.callback(undefined, this.#onError))
    return 'path' in at ? where : `${this.#scheme}://${where}`
  }

  /** The protocol has no words for it: clients stay until the port is closed. */
  drain(): void {}

  async stop(finishMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.connections.stop(finishMs)
    await Promise.race([closed, after(finishMs)])
    this.#handshakes?.close()
    this.connections.destroy()
    await closed
  }
}
