import type { MiddlewareResult } from '../../../sluicegate/dist/middleware/middleware.js'
import type { ReceivedFacts } from '../../../sluicegate/dist/middleware/misuse-watch.js'

/** A request as a framework might have it. */
export interface PlainRequest {
  readonly method?: string
  readonly path?: string
  readonly user?: string
  readonly address?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Whether it came over a socket. */
  readonly isReceived?: boolean
}

/** What an adapter would say of it. */
export function plainFacts({
  method = 'GET',
  path = '/',
  address = '192.0.2.1',
  headers = {},
  isReceived = false,
}: PlainRequest): ReceivedFacts {
  return { method, path, route: undefined, remoteAddress: address, isReceived, header: (name) => headers[name] }
}

/** The status of an outcome, 200 for one that passes. */
export function statusOf(outcome: MiddlewareResult): number {
  return outcome.passes ? 200 : outcome.status
}

/** One header of an outcome. */
export function headerOf(outcome: MiddlewareResult, name: string): string | undefined {
  return new Map(outcome.headers).get(name)
}
