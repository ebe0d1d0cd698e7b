import { type AddressInfo, createServer, isIPv6, type Server } from 'node:net'
import { after } from '../../after.js'
import type { ClientBounds } from '../../config/config.js'
import type { ListenAddress } from '../../config/listen-address.js'
import type { Engine } from '../../engine/engine.js'
import type { ProtocolServer } from '../protocol-server.js'
import type { Access } from './access.js'
import { CommandTable } from './command-table.js'
import { ALL_COMMANDS } from './commands/all-commands.js'
import { Connections } from './connections.js'

/** What a {@link RespServer} is made of. */
export interface RespServerParts {
  readonly engine: Engine
  readonly access: Access
  readonly bounds: ClientBounds
  readonly version: string
}

const COMMANDS = new CommandTable(ALL_COMMANDS)

/** Answers the commands of Redis clients: `CL.THROTTLE`, and the named policies. */
export class RespServer implements ProtocolServer {
  readonly connections: Connections
  readonly #server: Server

  constructor({ engine, access, bounds, version }: RespServerParts) {
    const startedMs = performance.now()
    const uptimeS = (): number => Math.floor((performance.now() - startedMs) / 1000)
    const facts = () => ({ version, connections: this.connections.open, uptimeS: uptimeS() })
    this.connections = new Connections(bounds, { engine, access, commands: COMMANDS, facts })
    // A client may close its side and still read the replies.
    this.#server = createServer({ allowHalfOpen: true }, (socket) => this.connections.add(socket))
  }

  async listen(at: ListenAddress): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(at, resolve)
    })
    if ('path' in at) return `unix:${at.path}`
    const { address, port } = this.#server.address() as AddressInfo
    return `redis://${isIPv6(address) ? `[${address}]` : address}:${port}`
  }

  /** The protocol has no words for it: clients stay until the port is closed. */
  drain(): void {}

  async stop(finishMs: number): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    this.connections.stop()
    await Promise.race([closed, after(finishMs)])
    this.connections.destroy()
    await closed
  }
}
