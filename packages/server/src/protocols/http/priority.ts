import type { IncomingMessage } from 'node:http'
import type { Access } from '../../access.js'
import type { AskedPriority } from '../../engine/priorities.js'
import { secretOf } from './access.js'
import type { Parameters } from './parameters.js'
import { Problem } from './problem.js'

const HEADER = 'x-sluicegate-priority'

/** The class of a request: its parameter `priority`, else its header, as far as its token allows. */
export function priorityOf(request: IncomingMessage, access: Access, parameters?: Parameters): AskedPriority {
  const values = request.headersDistinct[HEADER]
  if (values !== undefined && values.length > 1)
    throw new Problem(400, 'PARAMETER_REPEATED', `${HEADER} is given more than once: give it once`)
  return { name: parameters?.priority() ?? values?.[0], cap: () => access.priorityOf(secretOf(request)) }
}
