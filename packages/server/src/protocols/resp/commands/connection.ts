import { DEFAULT_USER, userOf, userWithoutToken } from '../access.js'
import { type Client, type Command, CommandFault, NOT_AN_INTEGER, SYNTAX_ERROR, wrongArguments } from '../command.js'
import type { CommandReader } from '../command-reader.js'
import type { ReplyWriter } from '../reply-writer.js'
import { checkedName } from './client.js'

const CONNECTION = { keyAt: 0, flags: ['fast'] } as const
const WRONG_PASS = 'WRONGPASS invalid username-password pair or user is disabled.'
const NOAUTH_HELLO =
  'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time'

export const ping: Command = {
  ...CONNECTION,
  name: 'ping',
  arity: -1,
  summary: 'Returns PONG, or its argument.',
  run(_session, args, reply) {
    if (args.count > 2) throw wrongArguments('ping')
    if (args.count === 2) reply.bulk(args.copy(1))
    else reply.simple('PONG')
  },
}

export const echo: Command = {
  ...CONNECTION,
  name: 'echo',
  arity: 2,
  summary: 'Returns its argument.',
  run(_session, args, reply) {
    reply.bulk(args.copy(1))
  },
}

export const quit: Command = {
  ...CONNECTION,
  name: 'quit',
  arity: -1,
  beforeAuth: true,
  summary: 'Closes the connection.',
  run(client, _args, reply) {
    reply.simple('OK')
    client.end()
  },
}

export const reset: Command = {
  ...CONNECTION,
  name: 'reset',
  arity: 1,
  beforeAuth: true,
  summary: 'Makes the connection one that has sent nothing yet.',
  run(client, _args, reply) {
    client.user = userWithoutToken(client.context.access)
    client.clientName = ''
    client.protocol = 2
    reply.protocol = 2
    reply.simple('RESET')
  },
}

/** There is one database. */
export const select: Command = {
  ...CONNECTION,
  name: 'select',
  arity: 2,
  summary: 'Selects the database; there is only 0.',
  run(_session, args, reply) {
    const index = args.integer(1)
    if (Number.isNaN(index)) throw new CommandFault(NOT_AN_INTEGER)
    if (index !== 0) throw new CommandFault('ERR DB index is out of range')
    reply.simple('OK')
  },
}

export const auth: Command = {
  ...CONNECTION,
  name: 'auth',
  arity: -2,
  beforeAuth: true,
  summary: 'Authenticates with a token, and a name if it is not the default user.',
  run(client, args, reply) {
    if (args.count > 3) throw new CommandFault(SYNTAX_ERROR)
    const { access } = client.context
    if (!access.has('decide') && args.count === 2) {
      throw new CommandFault(
        'ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?',
      )
    }
    authenticate(client, args.count === 3 ? args.latin1(1) : DEFAULT_USER, args.latin1(args.count - 1))
    reply.simple('OK')
  },
}

/** `HELLO [2|3 [AUTH name token] [SETNAME name]]` */
export const hello: Command = {
  ...CONNECTION,
  name: 'hello',
  arity: -1,
  beforeAuth: true,
  summary: 'Chooses the version of the protocol.',
  run(client, args, reply) {
    const protocol = args.count > 1 ? args.integer(1) : client.protocol
    if (Number.isNaN(protocol)) throw new CommandFault('ERR Protocol version is not an integer or out of range')
    if (protocol !== 2 && protocol !== 3) throw new CommandFault('NOPROTO unsupported protocol version')
    const { credentials, name } = helloOptions(args)
    if (credentials !== undefined) authenticate(client, ...credentials)
    if (client.user === undefined) throw new CommandFault(NOAUTH_HELLO)
    if (name !== undefined) client.clientName = name
    client.protocol = protocol
    reply.protocol = protocol
    greet(client, reply)
  },
}

function helloOptions(args: CommandReader): { readonly credentials?: readonly [name: string, token: string]; readonly name?: string } {
  let options: ReturnType<typeof helloOptions> = {}
  for (let at = 2; at < args.count; ) {
    const option = args.latin1(at).toUpperCase()
    if (option === 'AUTH' && at + 2 < args.count) {
      options = { ...options, credentials: [args.latin1(at + 1), args.latin1(at + 2)] }
      at += 3
    } else if (option === 'SETNAME' && at + 1 < args.count) {
      options = { ...options, name: checkedName(args.latin1(at + 1)) }
      at += 2
    } else {
      throw new CommandFault(`ERR Syntax error in HELLO option '${option.slice(0, 32).replace(/[^ -~]/g, '?')}'`)
    }
  }
  return options
}

/** @throws {CommandFault} `WRONGPASS` */
function authenticate(client: Client, name: string, token: string): void {
  const { access } = client.context
  // Without tokens any one is right for the default user, as in Redis.
  const user =
    userOf(access, checkedName(name), token) ?? (name === DEFAULT_USER && !access.has('decide') ? userWithoutToken(access) : undefined)
  if (user === undefined) {
    client.countWrongToken()
    throw new CommandFault(WRONG_PASS)
  }
  client.user = user
}

function greet({ id, protocol, context }: Client, reply: ReplyWriter): void {
  reply.map(7)
  reply.bulk('server')
  reply.bulk('sluicegate')
  reply.bulk('version')
  reply.bulk(context.facts().version)
  reply.bulk('proto')
  reply.integer(protocol)
  reply.bulk('id')
  reply.integer(id)
  reply.bulk('mode')
  reply.bulk('standalone')
  reply.bulk('role')
  reply.bulk('master')
  reply.bulk('modules')
  reply.array(0)
}
