/** What requests of Express and of Fastify have in common. Where more is known, say so: `key: (request: express.Request) => ...`. */
export interface NestRequest {
  readonly method: string
  readonly url: string
  readonly originalUrl: string
  readonly ip?: string | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly params: unknown
  readonly query: unknown
  readonly body?: unknown
  /** What guards before this one have put there. */
  readonly user?: unknown
}
