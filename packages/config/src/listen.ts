import { DEFAULT_LISTEN, LISTENER_NAMES, type Listen } from './config.js'
import type { ListenAddress } from './listen-address.js'
import type { Section } from './section.js'

/** The section `listen`: an address for each protocol. `host` and `port` are another way to write `http`. */
export function readListen(section: Section): Listen {
  const listen: Record<string, ListenAddress | undefined> = { ...DEFAULT_LISTEN }
  for (const name of LISTENER_NAMES) if (section.has(name)) listen[name] = section.address(name)
  const host = section.text('host', '127.0.0.1')
  const port = section.integer('port', 0, 65_535)
  if (host !== undefined || port !== undefined) {
    if (section.has('http')) section.fault('http', 'has the host and the port in it: leave out host and port')
    const standard = DEFAULT_LISTEN.http as { host: string; port: number }
    listen.http = { host: host ?? standard.host, port: port ?? standard.port }
  }
  section.done()
  return listen as unknown as Listen
}
