import { printable, printableJson, UsageError } from '../terminal/usage-error.js'
import { ServiceClient } from './service-client.js'

/** Options of `sluicegate take`. */
export interface TakeOptions {
  readonly url: string
  readonly token: string | undefined
  readonly policy: string
  readonly key: string
  readonly cost: string
  readonly peek: boolean
  readonly timeoutMs: number
  readonly json: boolean
}

/** Exit codes of `take`, for scripts; 1 is an error. */
export const TAKE_EXIT = { allowed: 0, denied: 3, impossible: 4 } as const

interface Answer {
  readonly allowed: boolean
  readonly impossible?: true
  readonly remaining: number
  readonly limit: number
  readonly policy: string
  readonly retryAfterMs: number | null
  readonly detail?: string
}

/** Takes tokens from a running service, prints the decision, and returns the exit code. */
export async function take({ url, token, policy, key, cost, peek, timeoutMs, json }: TakeOptions): Promise<number> {
  if (!/^[1-9]\d{0,15}$/.test(cost)) throw new UsageError(`--cost must be an integer from 1, not "${cost}"`)
  const query = new URLSearchParams({ policy, key, cost })
  const { status, body } = await new ServiceClient(url, token, timeoutMs).get(`/v1/${peek ? 'peek' : 'take'}?${query}`)
  const answer = parsed(body)
  if (answer === undefined || ![200, 422, 429].includes(status)) {
    const detail = typeof answer?.detail === 'string' ? answer.detail : `the service answered ${status}`
    // 400: the arguments are wrong, such as a key that is too long.
    throw new UsageError(detail, answer !== undefined && status === 400 ? 2 : 1)
  }
  const outcome = answer.allowed ? 'allowed' : answer.impossible ? 'impossible' : 'denied'
  console.log(json ? printableJson(answer) : printable(textOf(outcome, answer)))
  return TAKE_EXIT[outcome]
}

function textOf(outcome: keyof typeof TAKE_EXIT, { remaining, policy, retryAfterMs }: Answer): string {
  const later = retryAfterMs === null || retryAfterMs === 0 ? '' : `, the same request passes in ${retryAfterMs} ms`
  return `${outcome} by ${policy}: ${remaining} left${later}`
}

function parsed(body: string): Answer | undefined {
  try {
    return JSON.parse(body) as Answer
  } catch {
    return undefined
  }
}
