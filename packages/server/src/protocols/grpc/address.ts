import { isIPv6 } from 'node:net'

/** Who a connection counts for: an IPv4 address, a /64 of IPv6, or all clients of a Unix socket together. */
export function addressOf(remote: string | undefined): string {
  if (remote === undefined) return 'unix'
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(remote)?.[1]
  if (mapped !== undefined) return mapped
  if (!isIPv6(remote)) return remote
  const [head = '', tail] = (remote.split('%')[0] as string).split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length
  return [...first, ...Array<string>(Math.max(0, zeros)).fill('0'), ...last].slice(0, 4).join(':')
}
