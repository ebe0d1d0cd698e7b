import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { LimitArgument } from '../../../sluicegate/dist/middleware/limit-argument.js'
import type { Site } from './site.js'

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
