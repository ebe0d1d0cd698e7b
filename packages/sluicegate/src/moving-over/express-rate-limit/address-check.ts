import type { Request } from 'express'
import { warnOnce } from '../../edge/warning.js'
import { isIpv4 } from '../../keys/ip-address.js'
import { identifiedAddress } from '../../keys/node-identifier.js'
import { onceInProcess } from '../../once-in-process.js'

/** How many keys are looked at that may be addresses. */
const LOOKED_AT = 1_000

const warn = /* @__PURE__ */ onceInProcess('warnings: checks of addresses', () => warnOnce())

/** Looks at keys that a `keyGenerator` gave, and warns of whole IPv6 addresses: whoever has one has as many as they like. */
export function addressCheck(): (key: unknown, request: Request) => void {
  let looks = 0
  return (key, request) => {
    if (looks >= LOOKED_AT || typeof key !== 'string' || !key.includes(':')) return
    looks++
    if (key !== request.ip) return
    const address = identifiedAddress(key, 0, key.length)
    if (address === undefined || isIpv4(address)) return
    warn(
      'SLUICEGATE_IPV6_WHOLE',
      'a keyGenerator gave a whole IPv6 address, and each client has a network full of them: say ipKeyGenerator(request.ip) there, or leave keyGenerator out',
    )
  }
}
