import type { CallRate, Throttled } from 'sluicegate/rate-table'
import { type Awaitable, PolicyError } from '../../engine/engine.js'
import type { CallTracing } from '../call-tracing.js'
import { type Client, type Command, CommandFault, type CommandList, NOT_AN_INTEGER, type Reply, wrongArguments } from './command.js'
import { client } from './commands/client.js'
import * as connection from './commands/connection.js'
import * as holds from './commands/holds.js'
import * as policies from './commands/policies.js'
import * as server from './commands/server.js'
import type { ReplyWriter } from './reply-writer.js'

/** `CL.THROTTLE key max_burst count period [quantity]`, as in redis-cell; keys may have any bytes. */
const throttle: Command = {
  name: 'cl.throttle',
  arity: -5,
  keyAt: 1,
  flags: ['write', 'fast'],
  summary: 'Takes from a key at a rate that comes with the call.',
  run(client, args, reply) {
    const { count } = args
    if (count > 6) throw wrongArguments('cl.throttle')
    const maxBurst = args.integer(2)
    const perPeriod = args.integer(3)
    const periodS = args.integer(4)
    const quantity = count === 6 ? args.integer(5) : 1
    if (Number.isNaN(maxBurst + perPeriod + periodS + quantity)) throw new CommandFault(NOT_AN_INTEGER)
    const answer = decided(client, args.latin1(1), { maxBurst, count: perPeriod, periodS }, quantity)
    if (answer instanceof Promise) return answer.then((throttled) => (later) => write(later, throttled))
    write(reply, answer)
  },
}

/** What the arguments are called in the protocol. */
const ARGUMENTS: Readonly<Record<string, string>> = { maxBurst: 'max_burst', periodS: 'period' }

function decided({ context: { engine } }: Client, key: string, rate: CallRate, quantity: number): Awaitable<Throttled> {
  try {
    const answer = engine.callRates.throttle(key, rate, quantity)
    return answer instanceof Promise ? answer.catch(refused) : answer
  } catch (error) {
    return refused(error)
  }
}

/** @throws the error in the words of the protocol. */
function refused(error: unknown): never {
  if (error instanceof PolicyError) throw new CommandFault(`ERR ${ARGUMENTS[error.option] ?? error.option} ${error.mend}`)
  throw error
}

function write(reply: ReplyWriter, { limited, limit, remaining, retryAfterS, resetAfterS }: Throttled): void {
  reply.decision(!limited, limit, remaining, retryAfterS, resetAfterS)
}

const SMALL = 0x20
const A = 0x41
const Z = 0x5a

/** Commands by name, in any case, compared without making a string. */
export class CommandTable implements CommandList {
  readonly #byLength: (readonly { readonly name: Buffer; readonly command: Command }[])[] = []
  readonly all: readonly Command[]

  constructor(commands: readonly Command[]) {
    this.all = commands
    for (const command of commands) {
      const name = Buffer.from(command.name)
      this.#byLength[name.length] = [...(this.#byLength[name.length] ?? []), { name, command }]
    }
  }

  find(bytes: Buffer, start: number, end: number): Command | 'http' | undefined {
    const length = end - start
    const candidates = this.#byLength[length]
    if (candidates !== undefined) {
      for (const { name, command } of candidates) if (isSame(name, bytes, start)) return command
    }
    return isSame(POST, bytes, start, length) || isSame(HOST, bytes, start, length) ? 'http' : undefined
  }
}

const POST = Buffer.from('post')
const HOST = Buffer.from('host:')

function isSame(name: Buffer, bytes: Buffer, start: number, length = name.length): boolean {
  if (length !== name.length) return false
  for (let i = 0; i < name.length; i++) {
    const byte = bytes[start + i] as number
    if ((byte >= A && byte <= Z ? byte | SMALL : byte) !== name[i]) return false
  }
  return true
}

/** Commands, of which those on a key are followed. */
export function tracedCommands(commands: readonly Command[], tracing: CallTracing | undefined): readonly Command[] {
  if (tracing === undefined) return commands
  return commands.map((command) => (command.keyAt === 0 ? command : tracedCommand(command, tracing)))
}

function tracedCommand(command: Command, tracing: CallTracing): Command {
  const name = command.name.toUpperCase()
  const call = { name, attributes: { 'sluicegate.command': name }, headers: undefined }
  return {
    ...command,
    run: (client, args, reply) =>
      tracing.run<Reply | undefined>(call, () => command.run(client, args, reply)) as Promise<Reply> | undefined,
  }
}

/** What the server answers, the most frequent first. */
export const ALL_COMMANDS: readonly Command[] = [
  throttle,
  policies.take,
  policies.peek,
  holds.open,
  holds.add,
  holds.close,
  policies.refund,
  policies.reset,
  connection.ping,
  connection.echo,
  connection.hello,
  connection.auth,
  connection.select,
  connection.reset,
  connection.quit,
  client,
  server.command,
  server.config,
  server.info,
  server.dbsize,
]
