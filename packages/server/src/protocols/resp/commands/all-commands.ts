import type { Command } from '../command.js'
import { client } from './client.js'
import * as connection from './connection.js'
import * as policies from './policies.js'
import * as server from './server.js'
import { throttle } from './throttle.js'

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
