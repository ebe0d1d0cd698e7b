import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { ClientBounds } from 'sluicegate-config/config.js'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'
import type { Certificates } from 'sluicegate-config/tls.js'
import { after } from '../../after.js'
import type { Engine } from '../../engine/engine.js'
import type { CallTracing } from '../call-tracing.js'
import { tlsOptions } from '../handshakes.js'
import { Port, type PortOptions } from '../port.js'
import type { ProtocolServer } from '../protocol-server.js'
import type { Access } from './access.js'
import { ALL_COMMANDS, CommandTable, tracedCommands } from './command-table.js'
import { Connections } from './connections.js'

/** What a {@link RespServer} is made of. */
export interface RespServerParts extends PortOptions {
  readonly engine: Engine
  readonly access: Access
  readonly bounds: ClientBounds
  readonly version: string
  /** Undefined: commands are not followed. */
  readonly tracing?: CallTracing | undefined
}

/** Connections beyond the bound that are kept until they are refused with a reply; more are closed without one. */
const REFUSED_AT_ONCE = 64
/** A client may close its side and still read the replies. */
const HALF_OPEN = { allowHalfOpen: true } as const

/** Answers the commands of Redis clients: `CL.THROTTLE`, and the named policies. */
export class RespServer implements ProtocolServer {
  readonly connections: Connections
  readonly #port: Port<Server>

  constructor(parts: RespServerParts) {
    const { engine, access, bounds, version, guard, tls, tracing } = parts
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
    this.connections = connections
    this.#port = new Port(server, 'redis', parts, bounds.maxConnections)
  }

  get traffic(): Connections {
    return this.connections
  }

  listen(at: ListenAddress): Promise<string> {
    return this.#port.listen(at)
  }

  certify(tls: Certificates): void {
    this.#port.certify(tls)
  }

  /** The protocol has no words for it: clients stay until the port is closed. */
  drain(): void {}

  async stop(finishMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#port.server.close(() => resolve()))
    this.connections.stop(finishMs)
    await Promise.race([closed, after(finishMs)])
    this.#port.closeHandshakes()
    this.connections.destroy()
    await closed
  }
}
