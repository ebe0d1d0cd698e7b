import type { MiddlewareSetting } from './middleware-setting.js'

const MANY_CLIENTS = 10_000

/** The addresses that sockets tell, each once. */
export function clientAddresses(clients: MiddlewareSetting['clients']): readonly string[] {
  switch (clients) {
    case 'one':
      return ['203.0.113.7']
    case 'many':
      return Array.from({ length: MANY_CLIENTS }, (_, i) => `10.${i >>> 16}.${(i >>> 8) & 255}.${i & 255}`)
    // The address that a server on all addresses sees of a client over IPv4.
    case 'mapped':
      return ['::ffff:203.0.113.7']
    case 'ipv6':
      return ['2001:db8:1234:5678:9abc:def0:1234:5678']
  }
}
