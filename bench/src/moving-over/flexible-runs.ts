import { RedisProcess } from 'sluicegate-testkit'
import { compareHistories } from './flexible-history.js'
import { RIVAL_CLIENTS, type RivalClient } from './flexible-redis.js'
import { SocketTwins } from './flexible-sockets.js'

const DAY_S = 86_400

/**
 * Random calls over HTTP of both libraries, on one Redis server, until each was asked so often. Seeds count up from `seed`; those that were
 * saved come first.
 *
 * @returns the seed after the last one.
 */
export async function compareOverSockets(requests: number, seed: number, saved: readonly number[] = []): Promise<number> {
  const server = await RedisProcess.start()
  const client = await (RIVAL_CLIENTS['node-redis'] as (port: number) => Promise<RivalClient>)(server.port)
  let [asked, next] = [0, seed]
  const compare = async (each: number): Promise<void> => {
    const keyPrefix = `seed-${each}`
    const open = (options: object) => SocketTwins.open({ ...options, keyPrefix } as never, client)
    asked += (await compareHistories(each, { duration: DAY_S, rounds: 1, calls: 200, open })).calls
  }
  try {
    for (const each of saved) await compare(each)
    while (asked < requests) await compare(next++)
  } finally {
    client.close()
    await server.stop()
  }
  return next
}
