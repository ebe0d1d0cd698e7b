import cluster from 'node:cluster'
import { lstatSync, unlinkSync } from 'node:fs'
import { type AddressInfo, connect, isIPv6, type Server } from 'node:net'
import { isMainThread } from 'node:worker_threads'
import type { ListenAddress } from 'sluicegate-config/listen-address.js'

/** Threads of the service listen on one port. */
const SHARED_PORT = { reusePort: true }
/** Unix sockets are for the user and the group of the service: `rw-rw----`. */
const SOCKET_UMASK = 0o117

/**
 * Listens, and resolves with the bound address as `host:port`, `[ipv6]:port` or `unix:/path`. The stale socket of a process that has died is
 * replaced. Later errors of the server, such as no more file descriptors, go to `onError`, which must not throw: open connections are still served.
 *
 * @throws the system's error, for example with `code: 'EADDRINUSE'`.
 */
export async function listenOn(server: Server, at: ListenAddress, onError: (error: Error) => void): Promise<string> {
  // The sockets of workers are the primary's: see prepareSharedSocket.
  if ('path' in at && !cluster.isWorker) await removeStaleSocket(at.path)
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    const listening = (): void => {
      server.off('error', reject)
      server.on('error', onError)
      resolve()
    }
    // Of a thread the first thread has set the mode: see prepareSharedSocket.
    if ('path' in at && !isMainThread) server.listen(at.path, listening)
    else if ('path' in at) withSocketMode(() => server.listen(at.path, listening))
    else server.listen({ port: at.port, host: at.host, ...(isMainThread ? {} : SHARED_PORT) }, listening)
  })
  if ('path' in at) return `unix:${at.path}`
  const { address, port } = server.address() as AddressInfo
  return `${isIPv6(address) ? `[${address}]` : address}:${port}`
}

/**
 * Removes the socket at `path` if no process listens on it. Anything else at that path stays, and the call to `listen` that follows fails with
 * `EADDRINUSE`.
 */
async function removeStaleSocket(path: string): Promise<void> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() && (await isAbandoned(path))) unlinkSync(path)
}

/** In a primary process or thread, before its workers listen at `path`. */
export async function prepareSharedSocket(path: string): Promise<void> {
  process.umask(SOCKET_UMASK)
  await removeStaleSocket(path)
}

/** Calls `bind`, which creates Unix sockets before it returns, so that they are never open to other users. */
function withSocketMode<Result>(bind: () => Result): Result {
  const before = process.umask(SOCKET_UMASK)
  try {
    return bind()
  } finally {
    process.umask(before)
  }
}

function isAbandoned(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path)
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}
