import { PolicyError } from '../../errors.js'
import type { RateLimits } from './rate-limit-guard.js'

// What the decorators of @nestjs/websockets leave, whose package is not needed otherwise.
const IS_GATEWAY = 'websockets:is_gateway'
const IS_MESSAGE = 'websockets:message_mapping'

/** The part of reflect-metadata that is used. */
interface Metadata {
  getMetadata(key: string, target: object): unknown
}

/** The modules of an app, by what they provide. */
type Modules = ReadonlyMap<string, { readonly providers: ReadonlyMap<unknown, { readonly metatype: unknown }> }>

/**
 * Refuses an app whose gateways the guard of all handlers would see: it would throw at each of their messages, which are no requests.
 *
 * @throws {PolicyError} `OPTION_INVALID`
 */
export function refuseGateways(modules: Modules, limits: Pick<RateLimits, 'middlewareFor'>): void {
  const { getMetadata }: Partial<Metadata> = Reflect as Partial<Metadata>
  if (getMetadata === undefined) return
  for (const { providers } of modules.values()) {
    for (const { metatype } of providers.values()) {
      if (typeof metatype !== 'function' || getMetadata(IS_GATEWAY, metatype) !== true) continue
      const handler = messagesOf(metatype, getMetadata).find((each) => limits.middlewareFor(each, metatype) !== undefined)
      if (handler !== undefined) throw notLimited(`${metatype.name}.${handler.name}`)
    }
  }
}

function messagesOf({ prototype }: { readonly prototype: object }, getMetadata: Metadata['getMetadata']): readonly NamedHandler[] {
  const all: NamedHandler[] = []
  for (let owner = prototype; owner !== Object.prototype && owner !== null; owner = Object.getPrototypeOf(owner) as object) {
    for (const { value } of Object.values(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value === 'function' && getMetadata(IS_MESSAGE, value) === true) all.push(value as NamedHandler)
    }
  }
  return all
}

type NamedHandler = object & { readonly name: string }

function notLimited(handler: string): PolicyError {
  const mend = 'is of a WebSocket gateway, whose messages are no requests: take from createLimiter(policy) there, and say @SkipRateLimit()'
  return new PolicyError('OPTION_INVALID', 'RateLimitModule', handler, mend)
}
