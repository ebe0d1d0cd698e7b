import { Agent, request } from 'node:http'
import { Agent as EncryptedAgent, request as encryptedRequest } from 'node:https'
import { connect, type Socket } from 'node:net'
import { childrenOf } from '../servers/server-child.js'
import type { ServiceProcess } from './sluicegate-process.js'

/** What a request received. */
export interface Received {
  readonly status: number
  /** Of JSON; empty otherwise. */
  readonly body: Record<string, unknown>
}

/** One request over a connection of `agent`; by default a new one, which any worker may take. With a value it is a POST. An agent with `ca` encrypts. */
export function send(
  url: string,
  path: string,
  { agent = new Agent(), value }: { agent?: Agent; value?: unknown } = {},
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const method = value === undefined ? 'GET' : 'POST'
    const sent = (agent instanceof EncryptedAgent ? encryptedRequest : request)(
      `${url}${path}`,
      { agent, method, headers: { 'content-type': 'application/json' } },
      (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : {} }))
        response.on('error', reject)
      },
    )
    sent.setTimeout(30_000, () => sent.destroy(new Error('no answer')))
    sent.on('error', reject)
    sent.end(value === undefined ? undefined : JSON.stringify(value))
  })
}

/** How often each status came for `perConnection` requests of each of `connections` connections, or fewer once it `isOver`; an error is 0. */
export async function sendMany(
  url: string,
  path: string,
  connections: number,
  perConnection: number,
  isOver = (): boolean => false,
): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (let i = 0; i < perConnection && !isOver(); i++) {
        const { status } = await send(url, path, { agent }).catch(({ code }: NodeJS.ErrnoException) => ({
          status: code === 'ECONNREFUSED' ? -1 : 0,
        }))
        // The port is closed: the service did not take the request.
        if (status === -1) break
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
      agent.destroy()
    }),
  )
  return statuses
}

/** The processes that a service has started. */
export function workersOf({ child }: Pick<ServiceProcess, 'child'>): readonly number[] {
  return childrenOf(child.pid ?? 0)
}

/** What came back over a socket, in parts. */
export interface RawResponse {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/** An open connection to the service at `url`. */
export async function connectTo(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject))
  return socket
}

/** Sends bytes as they are, and reads until the other side hangs up. */
export async function rawExchange(url: string, bytes: string | Buffer): Promise<RawResponse> {
  const socket = await connectTo(url)
  socket.write(bytes)
  return parseResponse(await readToEnd(socket))
}

/** Everything that arrives until the connection is closed. */
export function readToEnd(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    // A reset after the answer is an end like any other.
    socket.on('error', () => {})
    socket.once('close', () => resolve(Buffer.concat(chunks).toString('latin1')))
  })
}

/** The parts of one response that is not chunked. */
export function parseResponse(text: string): RawResponse {
  const end = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
  })
  return { status: Number(statusLine.split(' ')[1]), headers: new Map(headers), body: text.slice(end + 4) }
}
