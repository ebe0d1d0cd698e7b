import { type AddressInfo, createServer } from 'node:net'
import { type Config, LISTENER_NAMES, type ListenerName } from 'sluicegate-config/config.js'
import { listenOn, prepareSharedSocket } from '../protocols/listen-on.js'

/** Ports of the listeners that have one. */
export type Ports = Readonly<Partial<Record<ListenerName, number>>>

/**
 * Makes ready what the workers share. Chooses ports where the system is to choose one, the same for all workers and those that replace them. Others must
 * be free: threads would share a port with another program that allows it, which would serve some of the connections.
 *
 * @throws the system's error when one is in use, with its `listener`.
 */
export async function sharedPorts({ listen }: Config): Promise<Ports> {
  const ports: Partial<Record<ListenerName, number>> = {}
  for (const name of LISTENER_NAMES) {
    const at = listen[name]
    if (at === undefined) continue
    if ('path' in at) {
      await prepareSharedSocket(at.path)
      continue
    }
    const server = createServer()
    try {
      await listenOn(server, at, () => undefined)
    } catch (error) {
      throw Object.assign(error as Error, { listener: name })
    }
    ports[name] = (server.address() as AddressInfo).port
    await new Promise((resolve) => void server.close(resolve))
  }
  return ports
}
