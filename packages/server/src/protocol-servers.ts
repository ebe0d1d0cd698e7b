import { grpcServer } from './protocols/grpc/grpc-protocol.js'
import type { ProtocolContext } from './protocols/protocol-context.js'
import type { ProtocolServer } from './protocols/protocol-server.js'
import { RespServer } from './protocols/resp/resp-server.js'
import { VERSION } from './version.js'

/** Servers of the protocols beside HTTP, by the name of their listener. */
export const PROTOCOL_SERVERS: Readonly<Partial<Record<'grpc' | 'resp', (context: ProtocolContext) => ProtocolServer>>> = {
  grpc: grpcServer,
  resp: ({ engine, access, clients, tls, log, guard, tracing }) =>
    new RespServer({
      engine,
      access,
      bounds: clients,
      version: VERSION,
      guard,
      tls,
      tracing,
      onError: (error) => log.error({ listener: 'resp', err: error }, 'a connection could not be taken'),
    }),
}
