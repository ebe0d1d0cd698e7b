import type { Access } from '../../access.js'
import type { AskedPriority } from '../../engine/engine.js'
import type { Call } from './method.js'

const BEARER = /^bearer +(\S+)$/i

/** The bearer token of a call. */
export function secretOf({ authorization }: Call['headers']): string | undefined {
  return BEARER.exec(authorization ?? '')?.[1]
}

/** The class of a request, in its metadata `x-sluicegate-priority`, as far as its token allows. */
export function priorityOf({ headers }: Call, access: Access): AskedPriority {
  const name = headers['x-sluicegate-priority']
  return { name: typeof name === 'string' ? name : undefined, cap: () => access.priorityOf(secretOf(headers)) }
}
