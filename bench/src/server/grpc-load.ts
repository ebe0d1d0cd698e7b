import { type ClientHttp2Session, connect } from 'node:http2'

const PATH = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
const HEADERS = { ':method': 'POST', ':path': PATH, 'content-type': 'application/grpc', te: 'trailers' }

/** Calls of a closed loop: `outstanding` at a time on each of `connections`, until `count` have been answered. Returns calls a second. */
export async function callsPerSecond(port: number, count: number, connections: number, outstanding: number): Promise<number> {
  const sessions = Array.from({ length: connections }, () => connect(`http://127.0.0.1:${port}`))
  // The error of a connection is that of its calls as well.
  for (const session of sessions) session.on('error', () => {})
  let left = count
  const loop = async (session: ClientHttp2Session, key: string): Promise<void> => {
    const frame = requestFrame(key)
    while (left-- > 0) await call(session, frame)
  }
  const startMs = performance.now()
  await Promise.all(sessions.flatMap((session, i) => Array.from({ length: outstanding }, (_, j) => loop(session, `user-${i}-${j}`))))
  const perSecond = count / ((performance.now() - startMs) / 1_000)
  for (const session of sessions) session.destroy()
  return perSecond
}

function call(session: ClientHttp2Session, frame: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(HEADERS)
    let answered = false
    stream.on('data', () => {
      answered = true
    })
    stream.once('error', reject)
    stream.once('end', () => (answered ? resolve() : reject(new Error('a call had no response'))))
    stream.end(frame)
  })
}

/** A request of one descriptor, `user=KEY` in the domain `edge`, with the prefix of gRPC. */
function requestFrame(key: string): Buffer {
  const field = (number: number, payload: Buffer): Buffer => Buffer.concat([Buffer.from([number * 8 + 2, payload.length]), payload])
  const entry = Buffer.concat([field(1, Buffer.from('user')), field(2, Buffer.from(key))])
  const message = Buffer.concat([field(1, Buffer.from('edge')), field(2, field(1, entry))])
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}
