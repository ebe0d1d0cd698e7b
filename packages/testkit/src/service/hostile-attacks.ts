import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'

/** The preface of HTTP/2, empty settings, and a frame of data of 16 MiB. */
const OVERSIZED_FRAME = `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\xff\xff\xff\0\0\0\0\0\x01`

/** An attack that goes on until its process ends. */
export interface Attack {
  readonly count: number
  /** Connections that the service has closed. */
  closed(): number
}

type Ports = Readonly<Record<'http' | 'grpc' | 'resp', number>>

/** Which attack a process begins. */
export interface AttackOrder {
  readonly name: string
  readonly ports: Ports
  readonly scale: number
}

/** Connections of the attack, and how many of them the service has closed. */
export interface AttackReport {
  readonly count: number
  readonly closed: number
}

/** By name. */
export const ATTACKS: Readonly<Record<string, (ports: Ports, scale: number) => Promise<Attack>>> = {
  idle: (ports, scale) => sockets(ports.http, Math.round(1_000 * scale), (socket) => socket.resume()),
  slowloris: (ports) => sockets(ports.http, 200, trickle('GET /v1/peek?policy=api&key=a HTTP/1.1\r\nHost: a\r\n')),
  unreadAnswers: (ports) => sockets(ports.http, 20, (socket) => flood(socket, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(100))),
  unreadReplies: (ports) => sockets(ports.resp, 20, (socket) => flood(socket, 'PING\r\n'.repeat(2_000))),
  oversizedCommands: (ports) => sockets(ports.resp, 20, (socket) => socket.resume().write('*3\r\n$99999999999\r\n')),
  oversizedFrames: (ports) => sockets(ports.grpc, 20, (socket) => socket.resume().write(OVERSIZED_FRAME, 'latin1')),
  rapidReset: (ports) => rapidReset(ports.grpc),
}

async function sockets(port: number, count: number, use: (socket: Socket) => void): Promise<Attack> {
  let closed = 0
  const all = await Promise.all(
    Array.from({ length: count }, async () => {
      const socket = connect(port, '127.0.0.1')
      socket.on('error', () => undefined)
      socket.once('close', () => closed++)
      await once(socket, 'connect')
      return socket
    }),
  )
  for (const socket of all) use(socket)
  return { count, closed: () => closed }
}

/** A byte every 50 ms. */
function trickle(text: string): (socket: Socket) => void {
  return (socket) => {
    socket.resume()
    let at = 0
    const timer = setInterval(() => socket.write(text[at++ % text.length] as string), 50)
    socket.once('close', () => clearInterval(timer))
  }
}

/** Sends for as long as the service reads, and reads nothing. */
export function flood(socket: Socket, batch: string): void {
  socket.pause()
  const write = (): void => {
    while (!socket.destroyed && socket.write(batch));
  }
  socket.on('drain', write)
  write()
}

async function rapidReset(port: number): Promise<Attack> {
  let closed = 0
  const session = connectHttp2(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  session.once('close', () => closed++)
  setInterval(() => {
    for (let i = 0; i < 50 && !session.closed && !session.destroyed; i++) {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
        'content-type': 'application/grpc',
      })
      stream.on('error', () => undefined)
      stream.close(8)
    }
  }, 10)
  return { count: 1, closed: () => closed }
}
