import { createServer } from 'node:net'

/** Below what systems give to outgoing connections, so that no connection gets one by chance. */
const LOWEST = 10_000
const PORTS = 10_000
/** So far above is where a cluster's node talks to the others. */
const BUS = 10_000

/** Ports of this machine without a listener now, each with the one 10,000 above. */
export async function freePorts(count: number): Promise<number[]> {
  const free = new Set<number>()
  while (free.size < count) {
    const port = LOWEST + Math.floor(Math.random() * PORTS)
    if ((await isFree(port)) && (await isFree(port + BUS))) free.add(port)
  }
  return [...free]
}

function isFree(port: number): Promise<boolean> {
  const server = createServer()
  return new Promise((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
