import { type HeaderPair, putHeaders } from '../../headers/header.js'
import { NodeFacts, type NodeRequest, type NodeResponse } from '../../middleware/node-exchange.js'

/** What requests of Express and of Fastify have in common. For more, name the type: `key: (request: express.Request) => ...`. */
export interface NestRequest {
  readonly method: string
  readonly url: string
  readonly originalUrl: string
  readonly ip?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly params: unknown
  readonly query: unknown
  readonly body?: unknown
  /** Set by earlier guards. */
  readonly user?: unknown
}

/** A request of Express, or one of Fastify with the request of Node.js in `raw`. */
export interface PlatformRequest extends NodeRequest {
  readonly raw?: NodeRequest
  readonly originalUrl: string
  readonly route?: { readonly path?: unknown }
  readonly routeOptions?: { readonly url?: string | undefined }
}

/** A response of Express, or a reply of Fastify. */
export interface PlatformResponse extends NodeResponse {
  readonly raw?: NodeResponse
  header?(name: string, value: string): unknown
  status(code: number): { send(body: string): unknown }
}

/** One request and its response, on either platform. */
export class NestExchange {
  readonly request: NodeRequest
  readonly response: NodeResponse
  private readonly incoming: PlatformRequest
  private readonly outgoing: PlatformResponse

  constructor(request: PlatformRequest, response: PlatformResponse) {
    this.incoming = request
    this.outgoing = response
    this.request = request.raw ?? request
    this.response = response.raw ?? response
  }

  facts(): NodeFacts {
    return new NestFacts(this.request, this.response, this.incoming)
  }

  put(headers: readonly HeaderPair[]): void {
    const { outgoing, response } = this
    if (response.headersSent) return
    const isFastify = outgoing.raw !== undefined
    // Fastify itself adds a line for each cookie.
    const set = (name: string, value: string): unknown => (isFastify ? outgoing.header?.(name, value) : response.setHeader(name, value))
    const append = (name: string, value: string): unknown => (isFastify ? set(name, value) : response.appendHeader(name, value))
    putHeaders(headers, { set, append })
  }

  send(status: number, body: string): void {
    if (!this.response.headersSent) this.outgoing.status(status).send(body)
  }
}

class NestFacts extends NodeFacts {
  private readonly incoming: PlatformRequest

  constructor(request: NodeRequest, response: NodeResponse, incoming: PlatformRequest) {
    super(request, response)
    this.incoming = incoming
  }

  protected get url(): string {
    return this.incoming.originalUrl
  }

  get route(): string | undefined {
    const { route, routeOptions } = this.incoming
    const pattern = routeOptions === undefined ? route?.path : routeOptions.url
    return typeof pattern === 'string' ? pattern : undefined
  }
}
