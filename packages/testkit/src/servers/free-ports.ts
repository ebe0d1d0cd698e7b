import { createServer, type ListenOptions } from 'node:net'

/** Below what systems give to outgoing connections, so that no connection gets one by chance. */
const LOWEST = 10_000
const PORTS = 10_000
/** So far above is where a cluster's node talks to the others. */
const BUS = 10_000

/** Ports of this machine without a listener, each with the one 10,000 above. No other process gets them here as long as this one runs. */
export async function freePorts(count: number): Promise<number[]> {
  const free = new Set<number>()
  while (free.size < count) {
    const port = LOWEST + Math.floor(Math.random() * PORTS)
    if ((await isOurs(port)) && (await isFree({ port })) && (await isFree({ port: port + BUS }))) free.add(port)
  }
  return [...free]
}

/** The port belongs to whoever listens at its name, which is in no folder and goes with the process. Where a system has no such names, it is free. */
function isOurs(port: number): Promise<boolean> {
  const server = createServer().unref()
  return new Promise((resolve) => {
    server.once('error', ({ code }: NodeJS.ErrnoException) => resolve(code !== 'EADDRINUSE'))
    server.listen(`\0sluicegate-port-${port}`, () => resolve(true))
  })
}

function isFree(at: ListenOptions): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen({ ...at, host: '127.0.0.1' }, () => server.close(() => resolve(true)))
  })
}
