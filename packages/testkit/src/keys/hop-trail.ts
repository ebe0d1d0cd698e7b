import { BlockList, isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Random } from '../random.js'
import { misspelt, spelledAddress } from './spelled-address.js'

/** What every hop wrote of the one before it, the nearest last, in words of the test: no header yet. */
export interface HopTrail {
  readonly socket: string
  readonly elements: readonly string[]
}

const PROXIES = ['10.0.0.2', '10.1.2.3', '::ffff:10.9.9.9', 'fd00::17', '172.16.5.4', '127.0.0.1']
const NO_ADDRESSES = ['unknown', '_hidden', '_gazonk:80', '', 'junk', '127.1', '010.0.0.1', '1.2.3.4.5', '__proto__', '\ud800']

/** A client who may have made up a few hops, and proxies behind him, most of them in {@link TRUSTED}. */
export function hopTrail(seed: number): HopTrail {
  const random = new Random(seed)
  const elements = Array.from({ length: random.integer(0, 5) }, () => {
    const choice = random.integer(0, 9)
    if (choice < 4) return withPort(random, random.pick(PROXIES))
    if (choice < 8) return withPort(random, spelledAddress(random).text.replace(/%.*/, ''))
    return choice < 9 ? random.pick(NO_ADDRESSES) : misspelt(random, random.pick(PROXIES)).replace(/[,;"\\=\s]/g, '')
  })
  return { socket: random.chance(0.8) ? random.pick(PROXIES) : spelledAddress(random).text.replace(/%.*/, ''), elements }
}

export const TRUSTED = ['uniquelocal', 'loopback']

const trusted = new BlockList()
trusted.addSubnet('10.0.0.0', 8, 'ipv4')
trusted.addSubnet('172.16.0.0', 12, 'ipv4')
trusted.addSubnet('192.168.0.0', 16, 'ipv4')
trusted.addSubnet('127.0.0.0', 8, 'ipv4')
trusted.addSubnet('fc00::', 7, 'ipv6')
trusted.addAddress('::1', 'ipv6')

/** Whose a request is, by arrays, regular expressions, ipaddr.js and net.BlockList: slow and plain. */
export function clientOf({ socket, elements }: HopTrail, hops: number | undefined): string {
  const chain = [socket, ...elements.toReversed()].map(addressIn)
  if (hops !== undefined) return chain.slice(0, hops + 1).findLast((address) => address !== undefined) as string
  const end = chain.findIndex((address) => address === undefined || !trusted.check(address, isIPv4(address) ? 'ipv4' : 'ipv6'))
  return (end < 0 ? chain.at(-1) : (chain[end] ?? chain[end - 1])) as string
}

/** Ports and brackets off, then as ipaddr.js writes it, if net.isIP takes it. */
function addressIn(element: string): string | undefined {
  const [, bracketed, plain] = element.match(/^(?:\[([^[\]]*:[^[\]]*)\]|([^:[\]]+))(?::(?:\d{1,5}|_[\w.-]+))?$/) ?? []
  const text = bracketed ?? plain ?? element
  if (isIP(text) === 0) return undefined
  const address = ipaddr.process(text)
  return address instanceof ipaddr.IPv6 ? address.toRFC5952String() : address.toString()
}

function withPort(random: Random, text: string): string {
  const port = random.pick(['', '', '', ':1', ':4711', ':65535', ':_web'])
  if (!text.includes(':')) return text + port
  return port === '' && random.chance(0.5) ? text : `[${text}]${port}`
}
