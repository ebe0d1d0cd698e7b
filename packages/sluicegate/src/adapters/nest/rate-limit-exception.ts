import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { DenialResponse } from '../../middleware/denial-response.js'
import { onceInProcess } from '../../once-in-process.js'
import { NestExchange } from './nest-exchange.js'

/** A request that does not pass. Its headers are set already; `getResponse()` is the body, as an object if it is one of JSON. */
class RateLimitException extends HttpException {
  readonly answer: DenialResponse

  constructor(answer: DenialResponse) {
    super(contentOf(answer), answer.status)
    this.answer = answer
  }
}

/** Of one identity in both forms of the package, so that `instanceof` agrees. */
const OnceRateLimitException: typeof RateLimitException = /* @__PURE__ */ onceInProcess('RateLimitException', () => RateLimitException)
type OnceRateLimitException = RateLimitException

export { OnceRateLimitException as RateLimitException }

function contentOf({ headers, body }: DenialResponse): string | Record<string, unknown> {
  const type = headers.findLast(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  return (/[/+]json\b/.test(type) ? objectOf(body) : undefined) ?? body
}

/** Nobody checks that a body is what its media type says. */
function objectOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Answers as the limit says, to the letter, where Nest's own filter would make JSON of everything. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch({ answer }: RateLimitException, host: ArgumentsHost): void {
    const http = host.switchToHttp()
    new NestExchange(http.getRequest(), http.getResponse()).send(answer.status, answer.body)
  }
}

Catch(RateLimitException)(RateLimitFilter)
