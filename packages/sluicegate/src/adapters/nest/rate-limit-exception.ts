import { type ArgumentsHost, Catch, type ExceptionFilter, HttpException } from '@nestjs/common'
import type { DenialResponse } from '../../middleware/denial-response.js'
import { onceInProcess } from '../../once-in-process.js'
import { NestExchange } from './nest-exchange.js'

/** A denied request. Its headers are set already; `getResponse()` is the body, parsed if it is JSON. */
class RateLimitException extends HttpException {
  readonly answer: DenialResponse

  constructor(answer: DenialResponse) {
    super(contentOf(answer), answer.status)
    this.answer = answer
  }
}

/** One class for both forms of the package, so that `instanceof` agrees. */
const OnceRateLimitException: typeof RateLimitException = /* @__PURE__ */ onceInProcess('RateLimitException', () => RateLimitException)
type OnceRateLimitException = RateLimitException

export { OnceRateLimitException as RateLimitException }

function contentOf({ headers, body }: DenialResponse): string | Record<string, unknown> {
  const type = headers.findLast(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  return (/[/+]json\b/.test(type) ? objectOf(body) : undefined) ?? body
}

/** An application's body may not match its media type. */
function objectOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** Sends the body of the denial unchanged; Nest's own filter would make JSON of any body. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch({ answer }: RateLimitException, host: ArgumentsHost): void {
    const http = host.switchToHttp()
    new NestExchange(http.getRequest(), http.getResponse()).send(answer.status, answer.body)
  }
}

Catch(RateLimitException)(RateLimitFilter)
