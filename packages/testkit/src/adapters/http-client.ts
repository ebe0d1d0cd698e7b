import { Agent, request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http'
import { connect } from 'node:net'

export interface ClientReply {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

export interface Asking {
  readonly method?: string
  readonly headers?: OutgoingHttpHeaders
  readonly body?: string
  readonly agent?: Agent
}

/** One that keeps a single connection open. */
export function singleSocket(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 1 })
}

/** For a crowd: as many connections as a listening socket takes at once. */
export function crowded(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 250 })
}

/** A request over its own socket, unless an agent is given. */
export function ask(port: number, path: string, { method = 'GET', headers = {}, body, agent }: Asking = {}): Promise<ClientReply> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, method, headers, agent: agent ?? false }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

/** A request whose client can hang up: `begun` resolves with the first piece of its body. */
export interface OpenRequest {
  readonly begun: Promise<string>
  hangUp(): void
}

export function openRequest(port: number, path: string): OpenRequest {
  let hangUp = (): void => undefined
  const begun = new Promise<string>((resolve) => {
    const sent = httpRequest({ host: '127.0.0.1', port, path, agent: false }, (response) => {
      response.once('data', (piece: Buffer) => resolve(piece.toString()))
      response.on('error', () => undefined)
    })
    sent.on('error', () => undefined)
    sent.end()
    hangUp = () => sent.destroy()
  })
  return { begun, hangUp: () => hangUp() }
}

/** Requests one after the other on one connection, none of which waits for the answers. Returns what hangs up. */
export function pipeline(port: number, path: string, times: number): () => void {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(times))
  return () => void socket.destroy()
}
