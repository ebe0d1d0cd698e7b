import { clientNetwork } from 'sluicegate/keys'

const networks = new Map<number, (text: string) => string | undefined>()

/** A key that a proxy writes, or the host of a socket: an address as the network that its client is counted by, any other text as it is. */
export function clientKey(text: string, ipv6Subnet = 56): string {
  let networkOf = networks.get(ipv6Subnet)
  if (networkOf === undefined) {
    networkOf = clientNetwork({ ipv6Subnet })
    networks.set(ipv6Subnet, networkOf)
  }
  return networkOf(text) ?? text
}
