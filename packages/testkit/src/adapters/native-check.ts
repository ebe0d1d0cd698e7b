// A program that any runtime runs: both entries that know no runtime, on its own server. It prints what was not so, or that all was.
import { Hono } from 'hono'
import { rateLimit as limitFetch } from '../../../sluicegate/dist/adapters/fetch.js'
import { rateLimit as limitHono } from '../../../sluicegate/dist/adapters/hono.js'
import { concurrency, createLimiter, fixedWindow, type Limiter } from '../../../sluicegate/dist/index.js'
import type { RunningApp } from './harness.js'
import { serving } from './http-client.js'

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
async function nativeServer(fetch: NativeHandler): Promise<RunningApp> {
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

type Limited = (limiter: Limiter, counts: 'all' | 'failures') => Parameters<typeof nativeServer>[0]

const faults: string[] = []
let checks = 0

function check(what: string, found: unknown, expected: unknown): void {
  checks++
  if (JSON.stringify(found) !== JSON.stringify(expected)) faults.push(`${what}: ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`)
}

async function until(what: string, isSo: () => boolean): Promise<void> {
  const endMs = Date.now() + 10_000
  while (!isSo() && Date.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 5))
  check(what, isSo(), true)
}

/** A response in two pieces, the second of which comes when it is let go. */
let letGo = (): void => undefined
function stream(): Response {
  const gate = new Promise<void>((resolve) => {
    letGo = resolve
  })
  let piece = 0
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (piece === 1) await gate
      if (piece === 2) controller.close()
      else controller.enqueue(new TextEncoder().encode(`piece ${piece++} `))
    },
  })
  return new Response(body)
}

function answer(path: string): Response {
  if (path === '/stream') return stream()
  return path === '/ok' ? new Response('ok') : new Response('none', { status: 404 })
}

const ENTRIES: Readonly<Record<string, Limited>> = {
  hono(limiter, counts) {
    const app = new Hono()
    app.use(limitHono({ limiter, counts }))
    app.get('*', ({ req }) => answer(req.path))
    return (request, environment) => app.fetch(request, environment)
  },
  fetch: (limiter, counts) =>
    limitFetch({ limiter, counts }).wrap((request: Request, _environment: object) => answer(new URL(request.url).pathname)),
}

for (const [name, limited] of Object.entries(ENTRIES)) {
  const run = async (limiter: Limiter, counts: 'all' | 'failures', use: (url: string) => Promise<void>): Promise<void> => {
    const { port, close } = await nativeServer(limited(limiter, counts))
    await use(`http://127.0.0.1:${port}`)
    await close()
  }
  const statusOf = async (url: string, method = 'GET'): Promise<number> => {
    const response = await fetch(url, { method })
    await response.text()
    return response.status
  }

  const few = createLimiter(fixedWindow({ name: 'few', limit: 2, window: 'day' }))
  await run(few, 'all', async (url) => {
    const passed = await fetch(`${url}/ok`)
    check(`${name} passes`, [passed.status, await passed.text(), passed.headers.get('ratelimit-policy')], [200, 'ok', '"few";q=2;w=86400'])
    check(`${name} passes HEAD`, await statusOf(`${url}/ok`, 'HEAD'), 200)
    const denied = await fetch(`${url}/ok`)
    check(
      `${name} denies`,
      [denied.status, denied.headers.get('content-type'), Number(denied.headers.get('retry-after')) > 0],
      [429, 'application/problem+json', true],
    )
    check(`${name} says which policy`, JSON.parse(await denied.text())['violated-policies'], ['few'])
    check(`${name} counts for the address of the socket`, few.peek('127.0.0.1').remaining, 0)
  })

  await run(createLimiter(fixedWindow({ limit: 123, window: 'day' })), 'all', async (url) => {
    const statuses = await Promise.all(Array.from({ length: 200 }, () => statusOf(`${url}/ok`)))
    check(`${name} lets through exactly`, statuses.filter((status) => status === 200).length, 123)
  })

  const failures = createLimiter(fixedWindow({ limit: 1, window: 'day' }))
  await run(failures, 'failures', async (url) => {
    for (let i = 0; i < 3; i++) {
      check(`${name} does not count what succeeds`, await statusOf(`${url}/ok`), 200)
      await until(`${name} gives back`, () => failures.peek('127.0.0.1').remaining === 1)
    }
    check(`${name} counts what fails`, [await statusOf(`${url}/none`), await statusOf(`${url}/ok`)], [404, 429])
  })

  const slots = createLimiter(concurrency({ limit: 1 }))
  await run(slots, 'all', async (url) => {
    const streaming = await fetch(`${url}/stream`)
    check(`${name} holds a place while it streams`, await statusOf(`${url}/ok`), 429)
    letGo()
    check(`${name} streams it all`, await streaming.text(), 'piece 0 piece 1 ')
    await until(`${name} has the place back after a stream`, () => slots.peek('127.0.0.1').remaining === 1)
    const aborter = new AbortController()
    const broken = await fetch(`${url}/stream`, { signal: aborter.signal })
    await broken.body?.getReader().read()
    aborter.abort()
    await until(`${name} has the place of a client that is gone`, () => slots.peek('127.0.0.1').remaining === 1)
    letGo()
  })
}

console.log(faults.length === 0 ? `${checks} checks hold` : faults.join('\n'))
