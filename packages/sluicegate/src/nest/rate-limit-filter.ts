import { type ArgumentsHost, Catch, type ExceptionFilter } from '@nestjs/common'
import { NestExchange } from './nest-exchange.js'
import { RateLimitException } from './rate-limit-exception.js'

/** Answers as the limit says, to the letter, where Nest's own filter would make JSON of everything. */
export class RateLimitFilter implements ExceptionFilter<RateLimitException> {
  catch({ answer }: RateLimitException, host: ArgumentsHost): void {
    const http = host.switchToHttp()
    new NestExchange(http.getRequest(), http.getResponse()).send(answer.status, answer.body)
  }
}

Catch(RateLimitException)(RateLimitFilter)
