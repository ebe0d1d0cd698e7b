import { HttpException } from '@nestjs/common'
import type { Answer } from '../edge/outcome.js'

/** A request that does not pass. Its headers are set already; `getResponse()` is the body, as an object if it is JSON. */
export class RateLimitException extends HttpException {
  readonly answer: Answer

  constructor(answer: Answer) {
    super(contentOf(answer), answer.status)
    this.answer = answer
  }
}

function contentOf({ headers, body }: Answer): string | Record<string, unknown> {
  const type = headers.findLast(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? ''
  return /[/+]json\b/.test(type) ? (JSON.parse(body) as Record<string, unknown>) : body
}
