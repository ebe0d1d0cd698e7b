import { RedisProcess } from 'sluicegate-testkit'
import { compareHistories } from './flexible-history.js'
import { RIVAL_CLIENTS, type RivalClient } from './flexible-redis.js'
import { SocketTwins } from './flexible-sockets.js'

/** Windows of which one ends hours away at any time: here they end at multiples of their length since 1970, there a length after their first call. */
const LONG_WINDOWS_S = [86_400, 100_000]

/**
 * Random calls over HTTP of both libraries, on one Redis server, until each was asked so often. Seeds count up from `seed`; those that were
 * saved come first.
 *
 * @returns the seed after the last one.
 */
export async function compareOverSockets(requests: number, seed: number, saved: readonly number[] = []): Promise<number> {
  const server = await RedisProcess.start()
  const client = await (RIVAL_CLIENTS['node-redis'] as (port: number) => Promise<RivalClient>)(server.port)
  const duration = lastToEndS(Date.now() / 1000)
  let [asked, next] = [0, seed]
  const compare = async (each: number): Promise<void> => {
    const keyPrefix = `seed-${each}`
    const open = (options: object) => SocketTwins.open({ ...options, keyPrefix } as never, client)
    asked += (await compareHistories(each, { duration, rounds: 1, calls: 200, open })).calls
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

function lastToEndS(nowS: number): number {
  const leftS = (windowS: number): number => windowS - (nowS % windowS)
  return LONG_WINDOWS_S.reduce((best, windowS) => (leftS(windowS) > leftS(best) ? windowS : best))
}
