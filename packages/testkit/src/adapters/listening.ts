import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { Limits, RunningApp } from './harness.js'
import type { Site } from './site.js'

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
