import { createServer } from 'node:net'

/** Ports of this machine that nobody listens on now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listening))
  const ports = servers.map(({ port }) => port)
  await Promise.all(servers.map(({ close }) => close()))
  return ports
}

/** Up to 10,000 above, where a cluster's nodes talk to each other, has to be a port too. */
const HIGHEST = 55_000

async function listening(): Promise<{ readonly port: number; close(): Promise<void> }> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const close = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
  if (typeof address !== 'object' || address === null) throw new Error('no address')
  if (address.port <= HIGHEST) return { port: address.port, close }
  const other = await listening()
  await close()
  return other
}
