const IPV4_MAPPED = /^::ffff:(?=\d+\.)/i
const IPV6_GROUPS = 8
/** An IPv6 network has 2^64 addresses, and one machine may use all of them. */
const NETWORK_GROUPS = 4

/** The host by which places of a socket's address are counted: an IPv4 address, or the /64 of an IPv6 address. */
export function hostOf(address: string): string {
  const plain = address.replace(IPV4_MAPPED, '')
  if (!plain.includes(':')) return plain
  const [head = '', tail] = plain.replace(/%.*$/, '').split('::')
  const before = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : IPV6_GROUPS - before.length - after.length
  return [...before, ...Array<string>(Math.max(0, zeros)).fill('0'), ...after].slice(0, NETWORK_GROUPS).join(':')
}
