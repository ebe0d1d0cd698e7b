import { createClient } from '@redis/client'

/** What is left after a `CL.THROTTLE` with these arguments, over a connection of its own to a Unix socket. */
export async function throttled(path: string, ...args: readonly string[]): Promise<number> {
  const client = createClient({ socket: { path, tls: false }, RESP: 2 })
  await client.connect()
  const reply = (await client.sendCommand(['CL.THROTTLE', ...args])) as unknown as readonly number[]
  client.destroy()
  return reply[2] as number
}
