/** What keys and headers need to know of a request: made by each adapter, never a framework's own object. */
export interface RequestFacts {
  /** As it stands in the request line: `GET`. */
  readonly method: string
  /** Without the query. */
  readonly path: string
  /** The pattern that matched, such as `/users/:id`, where the framework knows it. */
  readonly route: string | undefined
  /** The address of the socket: of the client, or of the proxy nearest to here. A Unix socket has none. */
  readonly remoteAddress: string | undefined
  /** A header by its lower-case name; several lines of it joined by `, `. */
  header(name: string): string | undefined
  /** Where it can be known: calls `tell` once the response has ended or its client has gone. */
  whenGone?(tell: () => void): void
}
