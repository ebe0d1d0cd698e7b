import type { Access } from '../../access.js'
import type { AskedPriority } from '../../engine/priorities.js'
import { secretOf } from './access.js'
import { isGivenTwice } from './given-twice.js'
import type { RequestHead } from './handler.js'
import type { Parameters } from './parameters.js'
import { Problem } from './problem.js'

const HEADER = 'x-sluicegate-priority'

/** The class of a request: its parameter `priority`, else its header, as far as its token allows. */
export function priorityOf(request: RequestHead, access: Access, parameters?: Parameters): AskedPriority {
  // Node joins several fields of that name, and builds its lists of distinct ones for all headers: few requests need that.
  const value = request.headers[HEADER] as string | undefined
  if (value !== undefined && isGivenTwice(request.rawHeaders, HEADER))
    throw new Problem(400, 'PARAMETER_REPEATED', `${HEADER} is given more than once: give it once`)
  return { name: parameters?.priority() ?? value, cap: () => access.priorityOf(secretOf(request)) }
}
