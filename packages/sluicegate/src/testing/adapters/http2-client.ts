import { once } from 'node:events'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import type { ClientReply } from './http-client.js'

/** A request over HTTP/2 without TLS, on a connection of its own. */
export async function askHttp2(port: number, path: string): Promise<ClientReply> {
  const session = connect(`http://127.0.0.1:${port}`)
  try {
    const stream = session.request({ ':path': path })
    stream.setEncoding('utf8')
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders & { readonly ':status'?: number }]
    let text = ''
    for await (const piece of stream) text += piece
    return { status: headers[':status'] ?? 0, headers, text }
  } finally {
    session.close()
  }
}

/** A request on a connection of its own whose client hangs up: resets the stream with a code, or without one destroys the connection. */
export function openHttp2(port: number, path: string): { hangUp(code: number | undefined): void } {
  const session = connect(`http://127.0.0.1:${port}`)
  session.on('error', () => undefined)
  const stream = session.request({ ':path': path })
  stream.on('error', () => undefined)
  stream.on('close', () => session.destroy())
  return { hangUp: (code) => void (code === undefined ? session.destroy() : stream.close(code)) }
}
