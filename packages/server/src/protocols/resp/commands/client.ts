import { type Client, type Command, CommandFault, wrongArguments } from '../command.js'
import type { CommandReader } from '../command-reader.js'
import type { ReplyWriter } from '../reply-writer.js'

const MAX_NAME_BYTES = 128
const NAME = /^[!-~]*$/

type Subcommand = (client: Client, args: CommandReader, reply: ReplyWriter) => void

/** By name, with their number of arguments. */
const SUBCOMMANDS: ReadonlyMap<string, readonly [count: number, run: Subcommand]> = new Map<string, readonly [number, Subcommand]>([
  ['SETNAME', [3, setName]],
  ['GETNAME', [2, (client, _args, reply) => (client.clientName === '' ? reply.null() : reply.bulk(client.clientName))]],
  ['SETINFO', [4, setInfo]],
  ['ID', [2, (client, _args, reply) => reply.integer(client.id)]],
  ['INFO', [2, (client, _args, reply) => reply.bulk(`${described(client)}\n`)]],
  ['NO-EVICT', [3, (_session, _args, reply) => reply.simple('OK')]],
  ['NO-TOUCH', [3, (_session, _args, reply) => reply.simple('OK')]],
])

/** `CLIENT`: what clients say about themselves when they connect. */
export const client: Command = {
  name: 'client',
  arity: -2,
  keyAt: 0,
  flags: ['fast'],
  summary: 'Names the connection, or returns what is known of it.',
  run(client, args, reply) {
    const name = args.latin1(1).toUpperCase()
    const subcommand = SUBCOMMANDS.get(name)
    if (subcommand === undefined) throw unknownSubcommand('CLIENT', args.latin1(1))
    const [count, run] = subcommand
    if (args.count !== count) throw wrongArguments(`client|${name.toLowerCase()}`)
    run(client, args, reply)
  },
}

export function unknownSubcommand(command: string, name: string): CommandFault {
  return new CommandFault(`ERR unknown subcommand '${name.slice(0, 32).replace(/[^ -~]/g, '?')}'. Try ${command} HELP.`)
}

/** @throws {CommandFault} for a name that a list of clients could not show. */
export function checkedName(name: string): string {
  if (name.length <= MAX_NAME_BYTES && NAME.test(name)) return name
  throw new CommandFault(`ERR Client names cannot contain spaces, newlines or special characters, or more than ${MAX_NAME_BYTES} of them`)
}

function setName(client: Client, args: CommandReader, reply: ReplyWriter): void {
  client.clientName = checkedName(args.latin1(2))
  reply.simple('OK')
}

function setInfo(client: Client, args: CommandReader, reply: ReplyWriter): void {
  const attribute = args.latin1(2).toLowerCase()
  const value = checkedName(args.latin1(3))
  if (attribute === 'lib-name') client.libraryName = value
  else if (attribute === 'lib-ver') client.libraryVersion = value
  else throw new CommandFault(`ERR Unrecognized option '${attribute.slice(0, 32).replace(/[^ -~]/g, '?')}'`)
  reply.simple('OK')
}

function described({ id, clientName, libraryName, libraryVersion, protocol, user }: Client): string {
  const fields = [
    ['id', id],
    ['name', clientName],
    ['user', user?.name ?? ''],
    ['lib-name', libraryName],
    ['lib-ver', libraryVersion],
    ['resp', protocol],
  ]
  return fields.map(([name, value]) => `${name}=${value}`).join(' ')
}
