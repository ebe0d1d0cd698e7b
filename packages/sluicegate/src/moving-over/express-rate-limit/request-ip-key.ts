import type { Request, Response } from 'express'
import { type Awaitable, chained } from '../../awaitable.js'
import { warnOnce } from '../../edge/warning.js'
import { PolicyError } from '../../errors.js'
import { identifiedAddress } from '../../keys/node-identifier.js'
import { onceInProcess } from '../../once-in-process.js'
import { ipKeyGenerator, subnetBits } from './ip-key-generator.js'

/** Bits of IPv6 that tell clients apart, false for all, or a function of the request. */
export type Ipv6Subnet = number | false | ((request: Request, response: Response) => Awaitable<number | false>)

const warn = /* @__PURE__ */ onceInProcess('warnings: keys of addresses', () => warnOnce())

/**
 * The key where no `keyGenerator` is given: `request.ip`, which Express finds by its setting `trust proxy`. Where that is no address, the
 * socket's has to do.
 *
 * @throws {PolicyError} `OPTION_INVALID`; at a request `TRUST_INVALID` where Express believes everybody
 */
export function requestIpKey(ipv6Subnet: Ipv6Subnet): (request: Request, response: Response) => Awaitable<string | undefined> {
  const fixed = typeof ipv6Subnet === 'function' ? undefined : subnetBits(ipv6Subnet)
  return (request, response) => {
    checkTrust(request)
    const ip = addressOf(request)
    if (ip === undefined) return undefined
    if (fixed !== undefined || !ip.includes(':')) return ipKeyGenerator(ip, fixed)
    return chained((ipv6Subnet as Exclude<Ipv6Subnet, number | false>)(request, response), (bits) => ipKeyGenerator(ip, subnetBits(bits)))
  }
}

function addressOf({ ip, socket }: Request): string | undefined {
  if (ip !== undefined && identifiedAddress(ip, 0, ip.length) !== undefined) return ip
  return socket.remoteAddress
}

function checkTrust({ app, headers }: Request): void {
  const trust: unknown = app?.get('trust proxy')
  if (trust === true) {
    const mend = 'would count for whatever address a client makes up: say how many proxies of yours stand in front, or give a keyGenerator'
    throw new PolicyError('TRUST_INVALID', 'trust proxy', trust, mend)
  }
  if (trust === false && headers['x-forwarded-for'] !== undefined) {
    warn(
      'SLUICEGATE_PROXY_UNTRUSTED',
      "a request came with x-forwarded-for, and Express trusts no proxy: if one of yours stands in front, all its clients share one key; say app.set('trust proxy', 1)",
    )
  }
}
