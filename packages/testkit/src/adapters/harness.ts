import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { Decision, Limiter } from '../../../sluicegate/dist/index.js'
import type { LimitArgument } from '../../../sluicegate/dist/middleware/limit-argument.js'
import type { MiddlewareLimiter } from '../../../sluicegate/dist/middleware/middleware-options.js'

/** What is limited in an app. */
export interface Limits<Request> {
  /** Everything. */
  readonly all?: LimitArgument<Request>
  /** What the app does with each request before its limit is asked. */
  readonly before?: () => Promise<void>
  /** The route `/strict`, besides or instead. */
  readonly strict?: LimitArgument<Request>
}

/** An app that listens. */
export interface RunningApp {
  readonly port: number
  close(): Promise<void>
}

/** A framework to test an adapter in. */
export interface Harness<Request> {
  readonly name: string
  /** Whether paths without a route are limited, too. */
  readonly limitsUnknown: boolean
  /** Whether requests of OPTIONS are. */
  readonly limitsOptions: boolean
  /** Whether the response of Node is known, which tells of clients that are gone before it had its turn. */
  readonly seesNode: boolean
  /** A header of the framework's own request. */
  header(request: Request, name: string): string | undefined
  start(site: Site, limits: Limits<Request>): Promise<RunningApp>
}

/** A server of Node's on a free port of loopback. */
export async function listening(server: Server): Promise<RunningApp> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as AddressInfo).port, close: () => closed(server) }
}

/** Ends it with all that is connected. */
export function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

/** An app that ends with its test. */
export type StartApp<Request> = (t: TestContext, limits: Limits<Request>) => Promise<RunningApp & { readonly site: Site }>

/** A limiter whose answers all come a moment later, as those of a store do. */
export function promisedLimiter(limiter: Limiter): MiddlewareLimiter {
  return {
    get policy() {
      return limiter.policy
    },
    take: async (key, cost) => limiter.take(key, cost),
    peek: async (key, cost) => limiter.peek(key, cost),
    refund: async (key, tokens) => limiter.refund(key, tokens),
  }
}

/** A limiter whose peeks see something else than its takes. */
export function misledLimiter(limiter: Limiter, seen: Partial<Decision>): MiddlewareLimiter {
  return {
    policy: limiter.policy,
    peek: (key, cost) => ({ ...limiter.peek(key, cost), ...seen }),
    take: (key, cost) => limiter.take(key, cost),
    refund: (key, tokens) => limiter.refund(key, tokens),
  }
}

/** What a route answers: a status with a text, or a text that comes in pieces. */
interface SiteReply {
  readonly status: number
  readonly text: string
  readonly pieces?: AsyncIterable<string>
}

/** The app behind a limit, whatever framework it is served by: its routes are `/ok`, `/status/:status`, `/slow`, `/stream`, `/throws`, `/strict`. */
export class Site {
  /** Requests that got past the limit. */
  handled = 0
  /** The errors that reached the framework's own error handling. */
  readonly errors: unknown[] = []
  private opened: (() => void) | undefined
  private gate: Promise<void> = Promise.resolve()

  /** From now on `/slow` and the second piece of `/stream` wait until the gate is opened. */
  shut(): void {
    this.gate = new Promise((resolve) => {
      this.opened = resolve
    })
  }

  open(): void {
    this.opened?.()
  }

  async reply(route: string, status = 200): Promise<SiteReply> {
    this.handled++
    if (route === 'throws') throw new Error('thrown by a handler')
    if (route === 'slow') await this.gate
    return route === 'stream' ? { status, text: '', pieces: this.pieces() } : { status, text: route }
  }

  /** What error handlers answer with 500. */
  caught(error: unknown): string {
    this.errors.push(error)
    return `caught: ${error instanceof Error ? error.message : String(error)}`
  }

  private async *pieces(): AsyncGenerator<string> {
    yield 'first '
    await this.gate
    yield 'second '
    yield 'third'
  }
}

/** The routes of a site, and the one whose status is in its path. */
export const ROUTES = ['ok', 'slow', 'stream', 'throws', 'strict'] as const
