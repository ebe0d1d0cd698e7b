import { ServiceClient } from './service-client.js'

/** Prints what a running service says of itself, and returns 0 while it takes requests, else 1: for health checks without a shell. */
export async function health(url: string): Promise<number> {
  const { status, body } = await new ServiceClient(url, undefined).get('/readyz')
  console.log(body.trimEnd())
  return status === 200 ? 0 : 1
}
