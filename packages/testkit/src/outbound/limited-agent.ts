import { Agent, type Dispatcher } from 'undici'
import { limited } from '../../../sluicegate/dist/outbound/limited.js'
import type { OutboundControls, OutboundOptions } from '../../../sluicegate/dist/outbound/outbound-options.js'
import { LimitedServer } from './limited-server.js'

export type Answering = Parameters<typeof LimitedServer.answering>[0]

/** A server, an agent, and the same agent limited. */
export interface Scene extends OutboundControls {
  readonly server: LimitedServer
  readonly agent: Agent
  readonly dispatcher: Dispatcher
}

/** Plays with a server that answers like this, over real sockets. */
export async function withLimitedAgent(answer: Answering, options: OutboundOptions, play: (scene: Scene) => Promise<void>): Promise<void> {
  const server = await LimitedServer.answering(answer)
  const agent = new Agent()
  const interceptor = limited({ jitter: 0, backoff: 20, ...options })
  const { stats, statsOf, forget, close } = interceptor
  try {
    await play({ server, agent, dispatcher: agent.compose(interceptor), stats, statsOf, forget, close })
  } finally {
    await agent.destroy()
    await server.stop()
  }
}

/** Lets the event loop turn so often. */
export async function turnsOf(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Lets it turn until it is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turnsOf(1)
}
