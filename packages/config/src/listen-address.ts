/** Where a server listens: a port of a host, or a Unix socket. */
export type ListenAddress = HostPort | SocketPath

export interface HostPort {
  /** A name or address, without brackets. */
  readonly host: string
  /** 0 lets the system choose a free port. */
  readonly port: number
}

export interface SocketPath {
  /** Absolute or relative to the working directory; at most 107 bytes, the system's limit. */
  readonly path: string
}

/** The most bytes of a socket's path on Linux; other systems have 103. */
const MAX_PATH_BYTES = 107
const HOST_PORT = /^(?:\[(?<ipv6>[\da-fA-F:.]+(?:%[\w.-]+)?)\]|(?<name>[\w.-]+)):(?<port>\d{1,5})$/

/** How addresses are written, for messages. */
const ADDRESS_FORMS = 'HOST:PORT, [IPV6]:PORT, unix:/PATH or off'

/**
 * The address in `text`: `127.0.0.1:8080`, `[::1]:8080`, `localhost:0`, `unix:/run/sluicegate.sock`, or `off`, which is undefined.
 *
 * @throws {RangeError} that says what is wrong.
 */
export function parseListenAddress(text: string): ListenAddress | undefined {
  if (text === 'off') return undefined
  if (text.startsWith('unix:')) {
    const path = text.slice('unix:'.length)
    if (path === '' || path.includes('\0')) throw new RangeError('unix: needs a path, for example unix:/run/sluicegate.sock')
    if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw new RangeError(`the path of a Unix socket has at most ${MAX_PATH_BYTES} bytes`)
    return { path }
  }
  const { ipv6, name, port } = HOST_PORT.exec(text)?.groups ?? {}
  const host = ipv6 ?? name
  if (host === undefined || Number(port) > 65_535) throw new RangeError(`must be ${ADDRESS_FORMS}, with a port of at most 65535`)
  return { host, port: Number(port) }
}

/** An address as {@link parseListenAddress} reads it. */
export function listenAddressText(at: ListenAddress | undefined): string {
  if (at === undefined) return 'off'
  if ('path' in at) return `unix:${at.path}`
  return at.host.includes(':') ? `[${at.host}]:${at.port}` : `${at.host}:${at.port}`
}
