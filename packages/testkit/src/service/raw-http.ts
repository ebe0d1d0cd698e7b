import { connect, type Socket } from 'node:net'

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
