import { readFileSync } from 'node:fs'
import type { RedisProcess } from '../servers/redis-process.js'
import type { User } from './redis-clients.js'

export const USER: User = { username: 'limiter', password: 'secret' }

const GUIDE = readFileSync(new URL('../../../../docs/redis.md', import.meta.url), 'utf8')

/** The commands that a limiter needs, as they are documented. */
export const DOCUMENTED_COMMANDS = commandsIn(/ACL SETUSER limiter .*?-@all(.*?)```/s)

/** Those that one with overrides needs beside. */
export const DOCUMENTED_FOR_OVERRIDES = commandsIn(/need these as well:\n\n```(.*?)```/s)

/** Lets {@link USER} do this and no more. */
export async function allow(nodes: readonly RedisProcess[], commands: readonly string[], keys = 'sluicegate:*'): Promise<void> {
  const rules = ['reset', 'on', `>${USER.password}`, `~${keys}`, '-@all', ...commands.map((command) => `+${command}`)]
  for (const node of nodes) await node.ask('ACL', 'SETUSER', USER.username, ...rules)
}

/** Where a server is found by {@link USER}. */
export function userUrl({ host, port }: RedisProcess): string {
  return `redis://${USER.username}:${USER.password}@${host}:${port}`
}

/** The commands of an ACL rule in the guide. */
function commandsIn(place: RegExp): string[] {
  const rule = place.exec(GUIDE)?.[1] ?? ''
  return [...rule.matchAll(/\+([a-z]+)/g)].map(([, command]) => command as string)
}
