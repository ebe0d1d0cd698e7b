import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Agent, type Dispatcher } from 'undici'
import { createLimiter } from '../../../sluicegate/dist/create-limiter.js'
import type { Decision } from '../../../sluicegate/dist/decision/decision.js'
import { type HeaderVersion, HeaderWriter } from '../../../sluicegate/dist/headers/header-writer.js'
import { limited } from '../../../sluicegate/dist/outbound/limited.js'
import type { OutboundControls, OutboundOptions } from '../../../sluicegate/dist/outbound/outbound-options.js'
import type { Policy } from '../../../sluicegate/dist/policy/policy.js'

/** A server on loopback that keeps to a policy, over real sockets. */
export class LimitedServer {
  passed = 0
  refused = 0
  /** What was asked, as `GET /path`. */
  readonly asked: readonly string[]
  private readonly server: Server

  private constructor(server: Server, asked: readonly string[]) {
    this.server = server
    this.asked = asked
  }

  /** @param tell what it says of its decisions; default the truth. `silent`: nothing at all, not even `Retry-After`. */
  static async start(
    policy: Policy,
    version: HeaderVersion | 'silent',
    tell = (decision: Decision): Decision => decision,
  ): Promise<LimitedServer> {
    const limiter = createLimiter(policy)
    const writer = new HeaderWriter({ version: version === 'silent' ? 'none' : version })
    const started = await LimitedServer.answering((_, response) => {
      const decision = limiter.take('client')
      if (decision.allowed) started.passed++
      else started.refused++
      if (version !== 'silent') for (const [name, value] of writer.write(policy, tell(decision))) response.setHeader(name, value)
      response.statusCode = decision.allowed ? 200 : 429
      response.end('body')
    })
    return started
  }

  /** A server with scripted answers. */
  static async answering(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<LimitedServer> {
    const asked: string[] = []
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      answer(request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new LimitedServer(server, asked)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    await new Promise((resolve) => this.server.close(resolve))
  }
}

export type Answering = Parameters<typeof LimitedServer.answering>[0]

/** A server, an agent, and the same agent limited. */
interface Scene extends OutboundControls {
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
