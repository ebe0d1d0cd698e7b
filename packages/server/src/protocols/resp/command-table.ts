import type { CallTracing } from '../call-tracing.js'
import type { Command, CommandList, Reply } from './command.js'
import { client } from './commands/client.js'
import * as connection from './commands/connection.js'
import * as policies from './commands/policies.js'
import * as server from './commands/server.js'
import { throttle } from './commands/throttle.js'

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
