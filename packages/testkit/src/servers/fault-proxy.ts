import { connect, createServer, type Server, type Socket } from 'node:net'

/** Passes chunks on in their order, each no sooner than its delay says. */
class DelayLine {
  private readonly write: (chunk: Buffer) => void
  private readonly held: { readonly chunk: Buffer; readonly dueMs: number }[] = []

  constructor(write: (chunk: Buffer) => void) {
    this.write = write
  }

  pass(chunk: Buffer, delayMs: number): void {
    const last = this.held.at(-1)
    if (last === undefined && delayMs <= 0) this.write(chunk)
    else this.held.push({ chunk, dueMs: Math.max(last?.dueMs ?? 0, performance.now() + delayMs) })
    if (last === undefined) this.arm()
  }

  private arm(): void {
    const first = this.held[0]
    if (first !== undefined) setTimeout(() => this.release(), Math.max(0, first.dueMs - performance.now()))
  }

  private release(): void {
    for (let first = this.held[0]; first !== undefined && first.dueMs <= performance.now(); first = this.held[0]) {
      this.held.shift()
      this.write(first.chunk)
    }
    this.arm()
  }
}

/** What a network does to those who use it. */
export type Fault =
  /** Passes everything on. */
  | { readonly kind: 'none' }
  /** Each way takes so long, and up to so much longer, in order; of answers a share is lost, each with its connection, which is reset. */
  | { readonly kind: 'latency'; readonly delayMs: number; readonly jitterMs?: number; readonly lostShare?: number }
  /** Connections are reset, and new ones refused with a reset. */
  | { readonly kind: 'cut' }
  /** What the client sends arrives; what the server answers does not. */
  | { readonly kind: 'half-open' }
  /** Nothing arrives anywhere, and no connection is closed. */
  | { readonly kind: 'black-hole' }
  /** Connections end in the ordinary way, a moment after each request, before its answer. */
  | { readonly kind: 'slow-close'; readonly afterMs: number }

/** The server behind the proxy. */
interface Target {
  readonly host: string
  readonly port: number
}

interface Pair {
  readonly client: Socket
  readonly server: Socket
}

/** A TCP proxy on loopback before one server, whose faults can be changed while connections stand. */
export class FaultProxy {
  readonly host = '127.0.0.1'
  readonly port: number
  private readonly server: Server
  private target: Target
  private readonly pairs = new Set<Pair>()
  private fault: Fault = { kind: 'none' }
  /** Pieces that came from clients so far, one at least for each write that arrived apart. */
  pieces = 0
  /** Connections that were asked for so far, refused ones among them. */
  connections = 0

  private constructor(server: Server, port: number, target: Target) {
    this.server = server
    this.port = port
    this.target = target
  }

  static async before(target: Target): Promise<FaultProxy> {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const address = server.address()
    if (typeof address !== 'object' || address === null) throw new Error('no address')
    const proxy = new FaultProxy(server, address.port, target)
    server.on('connection', (client) => proxy.joined(client))
    return proxy
  }

  get url(): string {
    return `redis://${this.host}:${this.port}`
  }

  /** From now on. What was held back by a black hole is lost with its connection: it is reset when the fault ends. */
  set(fault: Fault): void {
    const wasSilent = this.fault.kind === 'black-hole' || this.fault.kind === 'half-open'
    this.fault = fault
    if (fault.kind === 'cut' || wasSilent) this.reset()
  }

  /** Another server takes the place of the one behind it, as when an address moves; connections are reset. */
  lead(target: Target): void {
    this.leadNext(target)
    this.reset()
  }

  /** As when a name is given another address: connections that are open stay where they are. */
  leadNext(target: Target): void {
    this.target = target
  }

  async stop(): Promise<void> {
    this.reset()
    await new Promise((resolve) => this.server.close(resolve))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  private reset(): void {
    for (const pair of this.pairs) this.resetOne(pair)
  }

  private resetOne(pair: Pair): void {
    const { client, server } = pair
    this.pairs.delete(pair)
    // A reset during a shutdown fails in libuv: the handle stays, and Node.js spins at its exit.
    if (client.writableEnded) client.destroy()
    else client.resetAndDestroy()
    server.destroy()
  }

  private joined(client: Socket): void {
    this.connections++
    if (this.fault.kind === 'cut') {
      client.resetAndDestroy()
      return
    }
    const server = connect(this.target.port, this.target.host)
    const pair = { client, server }
    this.pairs.add(pair)
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => undefined)
      socket.on('close', () => {
        this.pairs.delete(pair)
        client.destroy()
        server.destroy()
      })
    }
    this.pipe(client, server, pair, true)
    this.pipe(server, client, pair, false)
  }

  /** Passes on what comes, in order, as late as the fault of the moment says. */
  private pipe(from: Socket, to: Socket, pair: Pair, isRequest: boolean): void {
    const line = new DelayLine((chunk) => void to.write(chunk))
    from.on('data', (chunk: Buffer) => {
      if (isRequest) this.pieces++
      const { fault } = this
      if (fault.kind === 'black-hole' || (fault.kind === 'half-open' && !isRequest)) return
      if (!isRequest && fault.kind === 'latency' && Math.random() < (fault.lostShare ?? 0)) {
        this.resetOne(pair)
        return
      }
      if (fault.kind === 'slow-close') {
        if (!isRequest) return
        setTimeout(() => from.end(), fault.afterMs)
      }
      line.pass(chunk, fault.kind === 'latency' ? fault.delayMs + Math.random() * (fault.jitterMs ?? 0) : 0)
    })
    from.on('end', () => to.end())
  }
}
