import { type Awaitable, isPromise } from '../awaitable.js'
import { PolicyError } from '../errors.js'
import { type Warn, warnOnce } from '../warn-once.js'
import { socketAddress } from './key-source.js'
import type { GatekeeperOptions } from './middleware-options.js'

const CURE =
  "say remoteAddress, or a key that needs none: key: apiKey(), or the header of your platform, key: header('cf-connecting-ip') of sluicegate/keys"

/** Runtimes whose handlers are told no address at all. */
const WITHOUT_ADDRESS: readonly (readonly [name: string, isIt: () => boolean])[] = [
  [
    'Cloudflare Workers',
    () => (globalThis as { readonly navigator?: { readonly userAgent?: string } }).navigator?.userAgent === 'Cloudflare-Workers',
  ],
  ['the edge runtime of Vercel', () => 'EdgeRuntime' in globalThis],
  ['Fastly Compute', () => 'fastly' in globalThis],
]

const warn = warnOnce()

/**
 * Refuses, as middleware is made, keys that no request has in this runtime.
 *
 * @throws {PolicyError} `KEY_MISSING`
 */
export function checkAddressNeed<Request>(options: GatekeeperOptions<Request>, isGiven: boolean): void {
  const { limits = [options], key } = options
  if (isGiven || !limits.some((limit) => isOfSocket(limit.key ?? key ?? socketAddress))) return
  const runtime = WITHOUT_ADDRESS.find(([, isIt]) => isIt())?.[0]
  if (runtime !== undefined)
    throw new PolicyError('KEY_MISSING', 'key', options.key, `would be the address of the client, which ${runtime} does not tell: ${CURE}`)
}

/** A decision about a request; where it has no address, what is thrown says what to do about it, and so does a warning: frameworks answer a bare 500. */
export function explained<Outcome>(address: string | undefined, decide: () => Awaitable<Outcome>, tell: Warn = warn): Awaitable<Outcome> {
  if (address !== undefined) return decide()
  const refused = (error: unknown): never => {
    throw addressFault(error, tell)
  }
  try {
    const outcome = decide()
    return isPromise(outcome) ? outcome.catch(refused) : outcome
  } catch (error) {
    return refused(error)
  }
}

function addressFault(error: unknown, tell: Warn): unknown {
  if (!(error instanceof PolicyError) || error.code !== 'KEY_MISSING' || !/\baddress\(/.test(error.mend)) return error
  tell('SLUICEGATE_ADDRESS_MISSING', `a request had no address to count it for, and was answered with an error: ${CURE}`)
  return new PolicyError('KEY_MISSING', error.option, error.value, `${error.mend}; this runtime told no address of the client: ${CURE}`, {
    cause: error,
  })
}

/** The address of the socket alone: readers that trust a header, or have an otherwise, may find a key without. */
function isOfSocket(source: unknown): boolean {
  const { header = '', readers } = source as { readonly header?: string; readonly readers?: unknown }
  return typeof source === 'object' && source !== null && 'header' in source && readers === undefined && header === ''
}
