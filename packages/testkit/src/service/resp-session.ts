import { type Clock, manualClock, type Policy, tokenBucket } from 'sluicegate'
import { Engine } from 'sluicegate-server/dist/engine/engine.js'
import type { Access } from 'sluicegate-server/dist/protocols/resp/access.js'
import type { SessionContext } from 'sluicegate-server/dist/protocols/resp/command.js'
import { ALL_COMMANDS, CommandTable } from 'sluicegate-server/dist/protocols/resp/command-table.js'
import { Session, type Waiting } from 'sluicegate-server/dist/protocols/resp/session.js'
import { commandBytes, type RespReply, repliesIn } from '../servers/resp.js'

/** Clients need no token, and may do all. */
export const OPEN_ACCESS: Access = {
  generation: 1,
  needsToken: () => false,
  has: () => false,
  allows: () => false,
  priorityOf: () => undefined,
}

/** Options of {@link sessionContext}. */
export interface SessionContextOptions {
  readonly clock?: Clock
  readonly access?: Access
  readonly policies?: readonly Policy[]
}

/** What sessions in tests share, by default with a policy `api` of 10 a minute. */
export function sessionContext({
  clock = manualClock(1.7e12),
  access = OPEN_ACCESS,
  policies,
}: SessionContextOptions = {}): SessionContext {
  const served = policies ?? [tokenBucket({ limit: 10, window: '1m', name: 'api' })]
  const engine = new Engine(
    served.map((policy) => ({ policy, maxKeys: undefined, onFull: 'evict' as const })),
    { clock },
  )
  const onFault = (fault: unknown): never => {
    throw fault
  }
  const facts = () => ({ version: '0.1.0', connections: 1, uptimeS: 0 })
  return { engine, access, commands: new CommandTable(ALL_COMMANDS), facts, onFault }
}

/** A session without a socket. */
export class TestSession {
  readonly session: Session

  constructor(context: SessionContext = sessionContext()) {
    this.session = new Session(1, context, () => undefined)
  }

  /** Adds bytes and answers what they complete. */
  feed(bytes: Buffer): { readonly replies: Buffer; readonly waiting: Waiting } {
    this.session.push(bytes)
    const replies: Buffer[] = []
    for (;;) {
      const waiting = this.session.run()
      replies.push(this.session.takeReplies())
      if (waiting !== 'turn' && waiting !== 'room') return { replies: Buffer.concat(replies), waiting }
    }
  }

  /** The reply to one command. */
  call(...args: readonly (string | Buffer | number)[]): RespReply {
    const [reply] = repliesIn(this.feed(commandBytes(...args)).replies)
    return reply as RespReply
  }
}
