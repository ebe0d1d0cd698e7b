import { type Client, type Command, CommandFault, type CommandList, wrongArguments } from '../command.js'
import type { CommandReader } from '../command-reader.js'
import type { ReplyWriter } from '../reply-writer.js'
import { unknownSubcommand } from './client.js'

const READ = { keyAt: 0, flags: ['readonly', 'fast'] } as const
/** Clients choose what they send by the version of Redis. */
const REDIS_VERSION = '7.0.0'
/** What redis-benchmark reads before it starts. */
const PARAMETERS: ReadonlyMap<string, string> = new Map([
  ['save', ''],
  ['appendonly', 'no'],
])

export const info: Command = {
  ...READ,
  name: 'info',
  arity: -1,
  summary: 'Describes the server.',
  run({ context }, _args, reply) {
    const { version, connections, uptimeS } = context.facts()
    const { keys } = context.engine.callRates.stats()
    const lines = [
      '# Server',
      `redis_version:${REDIS_VERSION}`,
      `sluicegate_version:${version}`,
      'redis_mode:standalone',
      `process_id:${process.pid}`,
      `uptime_in_seconds:${uptimeS}`,
      '',
      '# Clients',
      `connected_clients:${connections}`,
      '',
      '# Persistence',
      'loading:0',
      '',
      '# Replication',
      'role:master',
      'connected_slaves:0',
      '',
      '# Keyspace',
      `db0:keys=${keys},expires=${keys},avg_ttl=0`,
      '',
    ]
    reply.bulk(lines.join('\r\n'))
  },
}

/** `CONFIG GET parameter ...` */
export const config: Command = {
  ...READ,
  name: 'config',
  arity: -2,
  summary: 'Returns parameters that clients read when they connect.',
  run(_session, args, reply) {
    const subcommand = args.latin1(1)
    if (subcommand.toUpperCase() !== 'GET') throw unknownSubcommand('CONFIG', subcommand)
    if (args.count < 3) throw wrongArguments('config|get')
    const names = Array.from({ length: args.count - 2 }, (_, i) => args.latin1(i + 2).toLowerCase())
    const known = [...PARAMETERS].filter(([name]) => names.includes(name))
    reply.map(known.length)
    for (const [name, value] of known) {
      reply.bulk(name)
      reply.bulk(value)
    }
  },
}

/** Keys of `CL.THROTTLE`. */
export const dbsize: Command = {
  ...READ,
  name: 'dbsize',
  arity: 1,
  summary: 'Returns the number of keys of CL.THROTTLE.',
  run({ context }, _args, reply) {
    reply.integer(context.engine.callRates.stats().keys)
  },
}

type Described = (reply: ReplyWriter, commands: CommandList, args: CommandReader) => void

const SUBCOMMANDS: ReadonlyMap<string, Described> = new Map<string, Described>([
  ['COUNT', (reply, { all }) => reply.integer(all.length)],
  ['DOCS', writeDocs],
  ['INFO', (reply, commands, args) => (args.count === 2 ? writeAll(reply, commands) : writeNamed(reply, commands, args))],
  ['LIST', writeNames],
])

/** `COMMAND`, with which redis-cli completes and explains what is typed. */
export const command: Command = {
  ...READ,
  name: 'command',
  arity: -1,
  summary: 'Describes the commands.',
  run({ context: { commands } }: Client, args, reply) {
    if (args.count === 1) {
      writeAll(reply, commands)
      return
    }
    const subcommand = SUBCOMMANDS.get(args.latin1(1).toUpperCase())
    if (subcommand === undefined) throw unknownSubcommand('COMMAND', args.latin1(1))
    subcommand(reply, commands, args)
  },
}

function writeAll(reply: ReplyWriter, { all }: CommandList): void {
  reply.array(all.length)
  for (const each of all) writeEntry(reply, each)
}

function writeNamed(reply: ReplyWriter, commands: CommandList, args: CommandReader): void {
  reply.array(args.count - 2)
  for (const each of named(commands, args)) {
    if (each === undefined) reply.null()
    else writeEntry(reply, each)
  }
}

function writeNames(reply: ReplyWriter, { all }: CommandList): void {
  reply.array(all.length)
  for (const { name } of all) reply.bulk(name)
}

function writeDocs(reply: ReplyWriter, commands: CommandList, args: CommandReader): void {
  const documented = args.count === 2 ? commands.all : named(commands, args).filter((each) => each !== undefined)
  reply.map(documented.length)
  for (const { name, summary } of documented) {
    reply.bulk(name)
    reply.map(2)
    reply.bulk('summary')
    reply.bulk(summary)
    reply.bulk('group')
    reply.bulk('generic')
  }
}

/** Name, arity, flags, then the first key, the last, and the step between keys. */
function writeEntry(reply: ReplyWriter, { name, arity, flags, keyAt }: Command): void {
  reply.array(6)
  reply.bulk(name)
  reply.integer(arity)
  reply.array(flags.length)
  for (const flag of flags) reply.simple(flag)
  reply.integer(keyAt)
  reply.integer(keyAt)
  reply.integer(keyAt === 0 ? 0 : 1)
}

function named(commands: CommandList, args: CommandReader): (Command | undefined)[] {
  return Array.from({ length: args.count - 2 }, (_, i) => {
    const found = commands.find(args.bytes, args.starts[i + 2] as number, args.ends[i + 2] as number)
    if (found === 'http') throw new CommandFault('ERR syntax error')
    return found
  })
}
