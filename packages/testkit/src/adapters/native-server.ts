import { serving } from './fetch-server.js'
import type { RunningApp } from './harness.js'

type NativeHandler = (request: Request, environment: object) => Response | Promise<Response>

/** What is used of Bun and of Deno. */
interface Runtimes {
  readonly Bun?: {
    serve(options: { port: number; hostname: string; fetch: NativeHandler }): {
      readonly port: number
      stop(atOnce: boolean): Promise<void>
    }
  }
  readonly Deno?: {
    serve(options: { port: number; hostname: string; onListen(): void }, fetch: NativeHandler): NativeDenoServer
  }
}

interface NativeDenoServer {
  readonly addr: { readonly port: number }
  shutdown(): Promise<void>
}

/** Serves a handler by the runtime's own server; on Node by that of Hono. */
export async function nativeServer(fetch: NativeHandler): Promise<RunningApp> {
  const { Bun, Deno } = globalThis as Runtimes
  const place = { port: 0, hostname: '127.0.0.1' }
  if (Bun !== undefined) {
    const server = Bun.serve({ ...place, fetch })
    return { port: server.port, close: () => server.stop(true) }
  }
  if (Deno !== undefined) {
    const server = Deno.serve({ ...place, onListen: () => undefined }, fetch)
    return { port: server.addr.port, close: () => server.shutdown() }
  }
  return serving(fetch)
}
