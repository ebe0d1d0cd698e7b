import type { Access } from '../../access.js'
import type { Decision } from '../../engine/engine.js'
import { outcomeOf } from '../../engine/outcome.js'
import type { AskedPriority } from '../../engine/priorities.js'
import { secretOf } from './access.js'
import type { RequestHead } from './handler.js'
import type { Parameters } from './parameters.js'
import { isGivenTwice, Problem } from './problem.js'

/** A decision as JSON. JSON has no infinity: what can never pass has `"retryAfterMs":null` and `"impossible":true`. */
export function decisionJson(decision: Decision, more?: object): string {
  // JSON.stringify writes Infinity as null.
  return JSON.stringify(more === undefined ? decisionObject(decision) : { ...decisionObject(decision), ...more })
}

/** The members of a decision in JSON. */
export function decisionObject(decision: Decision): object {
  const { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source, parts, soft } = decision
  const answer = { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source }
  const said = soft === undefined ? answer : { ...answer, soft }
  const whole = outcomeOf(decision) === 'impossible' ? { ...said, impossible: true } : said
  return parts === undefined ? whole : { ...whole, parts: parts.map(decisionObject) }
}

const HEADER = 'x-sluicegate-priority'

/** The class of a request: its parameter `priority`, else its header, as far as its token allows. */
export function priorityOf(request: RequestHead, access: Access, parameters?: Parameters): AskedPriority {
  // Node joins several fields of that name, and builds its lists of distinct ones for all headers: few requests need that.
  const value = request.headers[HEADER] as string | undefined
  if (value !== undefined && isGivenTwice(request.rawHeaders, HEADER))
    throw new Problem(400, 'PARAMETER_REPEATED', `${HEADER} is given more than once: give it once`)
  return { name: parameters?.priority() ?? value, cap: () => access.priorityOf(secretOf(request)) }
}
