import { Agent, request } from 'node:http'
import { Agent as EncryptedAgent, request as encryptedRequest } from 'node:https'
import { childrenOf } from '../servers/children.js'
import type { ServiceProcess } from './sluicegate-process.js'

/** What a request received. */
export interface Received {
  readonly status: number
  /** Of JSON; empty otherwise. */
  readonly body: Record<string, unknown>
}

/** One request over a connection of `agent`; by default a new one, which any worker may take. With a value it is a POST. An agent with `ca` encrypts. */
export function send(
  url: string,
  path: string,
  { agent = new Agent(), value }: { agent?: Agent; value?: unknown } = {},
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const method = value === undefined ? 'GET' : 'POST'
    const sent = (agent instanceof EncryptedAgent ? encryptedRequest : request)(
      `${url}${path}`,
      { agent, method, headers: { 'content-type': 'application/json' } },
      (response) => {
        let text = ''
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text.startsWith('{') ? JSON.parse(text) : {} }))
        response.on('error', reject)
      },
    )
    sent.setTimeout(30_000, () => sent.destroy(new Error('no answer')))
    sent.on('error', reject)
    sent.end(value === undefined ? undefined : JSON.stringify(value))
  })
}

/** How often each status came for `perConnection` requests of each of `connections` connections; an error is 0. */
export async function sendMany(url: string, path: string, connections: number, perConnection: number): Promise<Map<number, number>> {
  const statuses = new Map<number, number>()
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      for (let i = 0; i < perConnection; i++) {
        const { status } = await send(url, path, { agent }).catch(({ code }: NodeJS.ErrnoException) => ({
          status: code === 'ECONNREFUSED' ? -1 : 0,
        }))
        // The port is closed: the service did not take the request.
        if (status === -1) break
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
      agent.destroy()
    }),
  )
  return statuses
}

/** The processes that a service has started. */
export function workersOf({ child }: Pick<ServiceProcess, 'child'>): readonly number[] {
  return childrenOf(child.pid ?? 0)
}
