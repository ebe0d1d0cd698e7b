import type { ListenAddress } from './listen-address.js'
import { integer, listener, option, text, valuesOf } from './option.js'
import type { Section } from './section.js'

/** Loopback only, unless the file or the command line says otherwise: by default the service authenticates no client. */
const USUAL = { host: '127.0.0.1', port: 8080 }

/** The section `listen`: an address for each protocol. `host` and `port` are another way to write `http`. */
export const LISTEN = {
  http: listener('http', USUAL, {
    what: 'Where HTTP is served: `host:port`, `[ipv6]:port`, `unix:/path` or `off`. Port 0 takes a free one.',
    example: '0.0.0.0:8080',
  }),
  grpc: listener('grpc', undefined, { what: "Where Envoy's services are served over gRPC.", example: '127.0.0.1:8081' }),
  resp: listener('resp', undefined, { what: 'Where Redis clients are served.', example: '127.0.0.1:6380' }),
  admin: listener('admin', undefined, {
    what: 'Where all of HTTP is served with verbs that change keys; its page shows keys unmasked.',
    example: '127.0.0.1:9090',
  }),
  host: option('host', text(USUAL.host), { what: 'The host of `listen.http`, written apart.', usual: USUAL.host, example: '0.0.0.0' }),
  port: option('port', integer(0, 65_535), { what: 'The port of `listen.http`, written apart.', usual: USUAL.port, example: 9000 }),
}

/** The surfaces of the service. `admin` is HTTP as well, with the verbs that change other callers' keys. */
export type ListenerName = 'http' | 'grpc' | 'resp' | 'admin'
export const LISTENER_NAMES: readonly ListenerName[] = ['http', 'grpc', 'resp', 'admin']

/** Where each protocol listens; undefined for one that is off. */
export type Listen = Readonly<Record<ListenerName, ListenAddress | undefined>>

export function readListen(section: Section): Listen {
  const { host, port, ...listen } = valuesOf(section, LISTEN)
  const isApart = host !== undefined || port !== undefined
  if (isApart && section.has('http')) section.fault('http', 'has the host and the port in it: leave out host and port')
  section.done()
  return isApart ? { ...listen, http: { host: host ?? USUAL.host, port: port ?? USUAL.port } } : listen
}
